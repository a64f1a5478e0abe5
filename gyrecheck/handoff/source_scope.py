"""The outline of one parsed file: its functions with their stage, its string constants, its typed records, and each node's parent."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from gyrecheck.model.key_reads import Stage
from gyrecheck.rulebook.source_words import SourceWords, matches

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Function:
    """One function or method, or the module's own statements (`node` is then the module)."""

    name: str
    qualname: str
    node: FunctionNode | ast.Module
    stage: Stage | None
    """None: its name says nothing, or it stands on the sampler's side."""
    writes: bool = False
    params: tuple[str, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)
    carriers: set[str] = field(default_factory=set)
    """Parameters that are known to hold a record or batch."""


@dataclass(slots=True)
class Module:
    """One file."""

    path: str
    tree: ast.Module
    functions: list[Function]
    constants: dict[str, tuple[str, ...]]
    """Names bound to a literal list of strings, or to a dict of strings to strings (its keys)."""
    maps: dict[str, tuple[str, ...]]
    """Names bound to a dict of strings to strings: its values."""
    records: dict[str, ast.ClassDef]
    """Classes that describe a record, by name."""
    parents: dict[ast.AST, ast.AST]


def scan_module(path: str, tree: ast.Module, words: SourceWords) -> Module:
    """The outline of one file."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    functions = [Function("<module>", "<module>", tree, "train")]
    records: dict[str, ast.ClassDef] = {}

    def visit(body: list[ast.stmt], prefix: str, owner: ast.ClassDef | None) -> None:
        for statement in body:
            if isinstance(statement, ast.ClassDef):
                if _is_record(statement, words):
                    records[statement.name] = statement
                visit(statement.body, f"{prefix}{statement.name}.", statement)
            elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                functions.append(_function(statement, prefix, owner, words))
                visit(statement.body, f"{prefix}{statement.name}.", None)
            else:
                for inner in ast.iter_child_nodes(statement):
                    if isinstance(inner, ast.stmt):
                        visit([inner], prefix, owner)

    visit(tree.body, "", None)
    shared: list[ast.AST] = [*tree.body, *(item for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for item in node.body)]
    shared += [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute)]
    constants, maps = string_constants(shared)
    return Module(path, tree, functions, constants, maps, records, parents)


def string_constants(nodes: list[ast.AST]) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Names that these statements bind to literal strings, and those bound to dicts of strings with their values."""
    constants: dict[str, tuple[str, ...]] = {}
    maps: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [last_name(target) for target in targets if isinstance(target, (ast.Name, ast.Attribute))]
            keys, values = strings_of(node.value)
            constants.update({name: keys for name in names if keys})
            maps.update({name: values for name in names if values})
    return constants, maps


def strings_of(node: ast.expr) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Strings of a literal list, tuple, set or dict (its keys), and the values of a dict of strings; empty when it is none."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        texts = [item.value for item in node.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
        return (tuple(texts), ()) if texts and len(texts) == len(node.elts) else ((), ())
    if isinstance(node, ast.Dict) and node.keys:
        keys = [key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
        values = [value.value for value in node.values if isinstance(value, ast.Constant) and isinstance(value.value, str)]
        if len(keys) == len(node.keys):
            return tuple(keys), tuple(values) if len(values) == len(keys) else ()
    return (), ()


def last_name(node: ast.AST | None) -> str:
    """The last component of a dotted name, of a call's function, or the empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, (ast.Call, ast.Subscript)):
        return last_name(node.func if isinstance(node, ast.Call) else node.value)
    return ""


def _is_record(node: ast.ClassDef, words: SourceWords) -> bool:
    kinds = [*map(last_name, node.bases), *map(last_name, node.decorator_list)]
    if matches(node.name, words.not_records):
        return False
    return any(kind in words.record_types for kind in kinds) and any(isinstance(item, ast.AnnAssign) for item in node.body)


def _function(node: FunctionNode, prefix: str, owner: ast.ClassDef | None, words: SourceWords) -> Function:
    args = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    params = tuple(arg.arg for arg in args if arg.arg not in {"self", "cls"})
    annotations = {arg.arg: last_name(arg.annotation) for arg in args if arg.annotation is not None}
    writes = matches(node.name, words.writers)
    owned = owner is not None and matches(owner.name, words.loader_classes)
    special = node.name.startswith("__") and node.name != "__getitem__"
    stage: Stage | None = None
    if matches(node.name, words.collators) and (owned or not special):
        stage = "collate"
    elif matches(node.name, words.loaders) and (owned or not special):
        stage = "loader"
    elif not writes and matches(node.name, words.train_steps):
        stage = "train"
    elif owned and not writes and not special:
        stage = "loader"
    carriers = {name for name in params if words.is_batch(name)}
    if "collat" in node.name and params:
        carriers.add(params[0])
    return Function(node.name, f"{prefix}{node.name}", node, stage, writes, params, annotations, carriers)
