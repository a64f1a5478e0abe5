"""What an import binds: modules, names, re-exports and stars, followed to the file that defines them."""

from __future__ import annotations

from gyrecheck.model.facts import Import
from gyrecheck.program.asked import Asked
from gyrecheck.program.tree import Thing


class Imported(Asked):
    """The import part of the resolver."""

    def imported(self, module: int, entry: Import) -> Thing | None:
        """What one import binds, seen from file `module`."""
        if entry.kind in {"module", "dynamic"}:
            target = entry.module if entry.alias else entry.module.partition(".")[0]
            found = self.tree.module(target, module)
            return Thing("module", found) if found >= 0 else Thing("ext", target)
        if entry.level:
            folder = self.tree.relative(module, entry.level, entry.module)
            inside = self.tree.at_path(f"{folder}/{entry.name}" if folder else entry.name)
            package = self.tree.at_path(folder)
            if package >= 0 and package != module:
                found_thing = self.exported(package, entry.name)
                if found_thing is not None:
                    return found_thing
            return Thing("module", inside) if inside >= 0 else Thing("ext", f"{folder.replace('/', '.')}.{entry.name}")
        at = self.tree.module(entry.module, module)
        if at >= 0:
            found_thing = self.exported(at, entry.name)
            if found_thing is not None:
                return found_thing
        inside = self.tree.module(f"{entry.module}.{entry.name}", module)
        return Thing("module", inside) if inside >= 0 else Thing("ext", f"{entry.module}.{entry.name}")

    def exported(self, module: int, name: str) -> Thing | None:
        """What `module.name` is: its own definition, a re-export, a star import, or a submodule."""
        key = (module, name)
        if key in self._exports:
            return self._exports[key]
        self._exports[key] = None
        body = self.tree.first_function[module]
        names = self.tree.names(body)
        found: Thing | None = None
        if name in names.functions or name in names.classes or name in names.binds or name in names.imports:
            found = self.path(body, name)
        if found is None:
            found = self.star(module, name)
        if found is None:
            base = self.tree.modules[module].path.removesuffix(".py").removesuffix("/__init__")
            inside = self.tree.at_path(f"{base}/{name}")
            found = Thing("module", inside) if inside >= 0 else None
        self._exports[key] = found
        return found

    def star(self, module: int, name: str) -> Thing | None:
        """A name that only a star import of the file can give."""
        for entries in self.tree.imports[module].values():
            for entry in entries:
                if entry.kind != "star":
                    continue
                if entry.level:
                    at = self.tree.at_path(self.tree.relative(module, entry.level, entry.module))
                else:
                    at = self.tree.module(entry.module, module)
                if at >= 0 and at != module:
                    found = self.exported(at, name)
                    if found is not None:
                        return found
                elif at < 0 and (f"{entry.module}.{name}" in self.lexicon.symbols or self.lexicon.type_made_by(f"{entry.module}.{name}")):
                    return Thing("ext", f"{entry.module}.{name}")
        return None
