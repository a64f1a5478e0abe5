"""Follow records and batches through the functions of a trainer's source and note every key that is read of them.

A variable holds a batch when its name says so, when it comes from a call that opens one, or when it is handed on from a variable that
does. Only then are its string subscripts and attributes keys.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gyrecheck.handoff.source_batches import Batches, own_nodes, strong
from gyrecheck.handoff.source_infer import infer
from gyrecheck.handoff.source_loops import loop_over
from gyrecheck.handoff.source_scope import Function, Module, last_name, strings_of
from gyrecheck.model.key_reads import How, KeyRead, Stage
from gyrecheck.rulebook.source_words import SourceWords

ROUNDS = 6
"""Calls a batch is followed through."""


class Walk:
    """One reading of all modules; `reads`, `produced` and `computed` are complete after `run`."""

    def __init__(self, modules: list[Module], words: SourceWords) -> None:
        self.words = words
        self.modules = modules
        self.reads: list[KeyRead] = []
        self.produced: dict[tuple[Stage, str], list[str]] = {}
        self.computed: list[str] = []
        self.layout: tuple[str, str] = ("", "")
        self._batches = Batches(words)
        self._own = {
            item.name
            for module in modules
            for record in module.records.values()
            for item in record.body
            if isinstance(item, ast.FunctionDef)
        }
        """Properties and methods of typed records: computed from fields, no fields themselves."""
        self._by_name: dict[str, list[Function]] = {}
        for module in modules:
            for function in module.functions:
                self._by_name.setdefault(function.name, []).append(function)

    def run(self) -> None:
        """Spread the batches through calls until nothing new is reached, then read."""
        for _ in range(ROUNDS):
            moved = [self._spread(module, function) for module in self.modules for function in module.functions]
            if not any(moved):
                break
        for module in self.modules:
            for function in module.functions:
                self._read(module, function)

    def _spread(self, module: Module, function: Function) -> bool:
        """Mark parameters of called functions that get a batch; True when a new one was marked."""
        new = False
        held = self._batches.held(module, function)
        for node in own_nodes(function.node):
            if not isinstance(node, ast.Call):
                continue
            for callee in self._by_name.get(last_name(node.func), ()):
                named = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
                given = dict(zip(callee.params, node.args, strict=False)) | {
                    name: value for name, value in named.items() if name in callee.params
                }
                for name, value in given.items():
                    if not callee.writes and (name not in callee.carriers or callee.stage is None) and self._batches.is_batch(value, held):
                        new = new or name not in callee.carriers or function.stage is not None
                        callee.carriers.add(name)
                        callee.stage = callee.stage or function.stage
        return new

    def _read(self, module: Module, function: Function) -> None:
        stage = function.stage or ("train" if len(self.modules) == 1 and not function.writes else None)
        if stage is None:
            return
        held = self._batches.held(module, function)
        for node in own_nodes(function.node):
            for key, how, default in self._keys(module, node, held):
                if key.startswith("__") or (how == "attribute" and key in self._own):
                    continue
                dtype, axes, swaps = infer(node, module.parents, function.node, self.words)
                optional = how == "test" or _tested(node, key, module.parents)
                self.reads.append(
                    KeyRead(
                        key=key,
                        path=module.path,
                        line=getattr(node, "lineno", 0),
                        function=function.qualname,
                        stage=stage,
                        how=how,
                        default=default,
                        optional=optional,
                        dtype=dtype,
                        axes=axes,
                        swaps=swaps,
                    )
                )
            self._stores(module, stage, node, held)
            self._padding(module, node)
        for name, held_by in self._typed_records(module, function):
            self._struct(module, module.records[name], held_by)

    def _keys(self, module: Module, node: ast.AST, held: dict[str, bool]) -> Iterator[tuple[str, How, str]]:
        """Keys read by this node, with how and with the default's source."""
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and self._batches.is_batch(node.value, held):
            for key in self._names(module, node.slice, node):
                yield key, "subscript", ""
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and self._batches.is_batch(node.func.value, held):
            if node.func.attr in {"get", "pop", "setdefault"} and node.args:
                given = node.args[1] if len(node.args) > 1 else next((k.value for k in node.keywords if k.arg == "default"), None)
                how: How = "default" if given is not None and _is_filling(given) else "get"
                if node.func.attr == "pop" and given is None:
                    how = "subscript"
                for key in self._names(module, node.args[0], node):
                    yield key, how, ast.unparse(given) if given is not None else ""
            elif node.func.attr in self.words.pickers:
                for value in (*node.args, *(k.value for k in node.keywords)):
                    for key in self._names(module, value, node):
                        yield key, "select", ""
        elif (
            isinstance(node, ast.Call)
            and last_name(node.func) == "getattr"
            and len(node.args) > 1
            and self._batches.is_batch(node.args[0], held)
        ):
            for key in self._names(module, node.args[1], node):
                default = ast.unparse(node.args[2]) if len(node.args) > 2 else ""
                yield key, "default" if len(node.args) > 2 and _is_filling(node.args[2]) else "get" if default else "attribute", default
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and strong(node.value, held):
            parent = module.parents.get(node)
            called = isinstance(parent, ast.Call) and parent.func is node
            if (
                not called
                and node.attr not in self.words.plain
                and node.attr not in self.words.containers
                and not node.attr.startswith("__")
            ):
                yield node.attr, "attribute", ""
        elif (
            isinstance(node, ast.Compare)
            and isinstance(node.ops[0], (ast.In, ast.NotIn))
            and self._batches.is_batch(_bare(node.comparators[0]), held)
        ):
            for key in self._names(module, node.left, node):
                yield key, "test", ""

    def _names(self, module: Module, node: ast.expr, at: ast.AST) -> tuple[str, ...]:
        """The strings an expression stands for: a literal, a list of them, a constant, or a loop variable over either."""
        if isinstance(node, ast.Constant):
            return (node.value,) if isinstance(node.value, str) else ()
        keys, _ = strings_of(node)
        if keys:
            return keys
        if isinstance(node, ast.Starred):
            return self._names(module, node.value, at)
        name = last_name(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        if not name:
            return ()
        return loop_over(name, at, module) or module.constants.get(name, ())

    def _stores(self, module: Module, stage: Stage, node: ast.AST, held: dict[str, bool]) -> None:
        """Keys written into a batch, and keys of the dict a loader returns, with the raw keys their values read."""
        pairs: list[tuple[str, ast.expr]] = []
        returned = isinstance(module.parents.get(node), (ast.Return, ast.Yield, ast.Assign, ast.Call, ast.ListComp, ast.GeneratorExp))
        if isinstance(node, ast.Dict) and returned and stage != "train":
            pairs = [
                (k.value, v)
                for k, v in zip(node.keys, node.values, strict=True)
                if isinstance(k, ast.Constant) and isinstance(k.value, str)
            ]
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                key = target.slice.value if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) else None
                if not isinstance(key, str) or not isinstance(target, ast.Subscript):
                    continue
                if self._batches.is_batch(target.value, held) or (stage != "train" and isinstance(target.value, ast.Name)):
                    pairs.append((key, node.value))
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "update"
            and self._batches.is_batch(node.func.value, held)
        ):
            pairs = [(k.arg, k.value) for k in node.keywords if k.arg]
        for key, value in pairs:
            raw = [name for inner in ast.walk(value) for name, _, _ in self._keys(module, inner, held)]
            if stage != "train":
                self.produced.setdefault((stage, key), []).extend(raw)
            elif key not in raw:
                self.computed.append(key)

    def _padding(self, module: Module, node: ast.AST) -> None:
        if not isinstance(node, ast.Call) or self.layout[0] or last_name(node.func) not in self.words.padders:
            return
        first = next((k.value for k in node.keywords if k.arg == "batch_first"), node.args[1] if len(node.args) > 1 else None)
        batch_first = isinstance(first, ast.Constant) and first.value is True
        if first is None or isinstance(first, ast.Constant):
            said = f"batch_first={batch_first}" if first is not None else "batch_first left at False"
            self.layout = ("BT" if batch_first else "TB", f"{last_name(node.func)} with {said} at {module.path}:{node.lineno}")

    def _typed_records(self, module: Module, function: Function) -> Iterator[tuple[str, Stage]]:
        """Record classes of this module that the function decodes into, or takes as a parameter at its own stage."""
        decoded: set[str] = set()
        for node in own_nodes(function.node):
            if isinstance(node, ast.Call):
                values = (*node.args, *(k.value for k in node.keywords))
                if last_name(node.func) in self.words.record_makers:
                    decoded |= {last_name(v) for v in values if last_name(v) in module.records}
                if last_name(node.func) in module.records and any(k.arg is None for k in node.keywords):
                    decoded.add(last_name(node.func))
        taken = {kind for kind in function.annotations.values() if kind in module.records and function.stage} - decoded
        yield from ((name, "loader") for name in sorted(decoded))
        yield from ((name, function.stage or "loader") for name in sorted(taken))

    def _struct(self, module: Module, record: ast.ClassDef, stage: Stage) -> None:
        for item in record.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                default = ast.unparse(item.value) if item.value is not None else ""
                how: How = "struct" if item.value is None else "default" if _is_filling(item.value) else "get"
                dtype, axes = _annotated(item.annotation)
                self.reads.append(
                    KeyRead(item.target.id, module.path, item.lineno, record.name, stage, how, default, bool(default), dtype, axes)
                )


def _tested(node: ast.AST, key: str, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether the read stands under `if "key" in x`."""
    current = parents.get(node)
    while current is not None and not isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
        test = getattr(current, "test", None)
        tests = isinstance(current, (ast.If, ast.IfExp)) and isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In)
        if tests and isinstance(test, ast.Compare) and isinstance(test.left, ast.Constant) and test.left.value == key:
            return True
        current = parents.get(current)
    return False


def _bare(node: ast.expr) -> ast.expr:
    """`x` of `x.keys()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys":
        return node.func.value
    return node


def _is_filling(node: ast.expr) -> bool:
    """A value that was made up: a constant, or zeros, ones and the like; not None, and not another measured value."""
    if isinstance(node, ast.Constant):
        return node.value is not None
    if isinstance(node, ast.UnaryOp):
        return _is_filling(node.operand)
    if isinstance(node, (ast.List, ast.Tuple, ast.Dict, ast.Set)):
        return True
    made = {
        "zeros",
        "zeros_like",
        "ones",
        "ones_like",
        "full",
        "full_like",
        "empty",
        "empty_like",
        "new_zeros",
        "new_ones",
        "eye",
        "tensor",
        "array",
    }
    return isinstance(node, ast.Call) and last_name(node.func) in made


def _annotated(node: ast.expr) -> tuple[str, tuple[str, ...]]:
    """Dtype and axes of an annotation: `list[list[float]]` is float with two ragged axes, `Float[Tensor, "B T D"]` names three."""
    if isinstance(node, ast.Subscript):
        inner = node.slice
        if isinstance(inner, ast.Tuple) and len(inner.elts) == 2 and isinstance(inner.elts[1], ast.Constant):
            dtype = {"Float": "float32", "Int": "int64", "Bool": "bool"}.get(last_name(node.value), "")
            return dtype, tuple(str(inner.elts[1].value).split())
        if last_name(node.value) in {"list", "List", "Sequence", "tuple", "Tuple"}:
            item = inner.elts[0] if isinstance(inner, ast.Tuple) else inner
            length = str(len(inner.elts)) if isinstance(inner, ast.Tuple) and not isinstance(inner.elts[-1], ast.Constant) else "L"
            dtype, axes = _annotated(item)
            return dtype, (length, *axes)
        return "", ()
    return {"int": "int64", "float": "float64", "bool": "bool", "str": "text"}.get(last_name(node), ""), ()
