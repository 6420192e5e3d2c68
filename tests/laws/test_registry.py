"""Laws over every task: declared whole, once, and truly."""

import ast
import pickle
import pkgutil
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import dsfr.training
from dsfr.storage.bundles import payload_bytes
from dsfr.training import TASKS
from dsfr.training.rows import ArrayRows
from dsfr.training.shard import KEPT
from dsfr.training.tasks.catalog import MODULES, privacy_table
from dsfr.training.tasks.declaration import BroadcastError, ContributionError, Field, number
from dsfr.training.tasks.registry import KEYS, OTHER, REGISTRY, STAGES, VERBS, Declared, remember, task
from dsfr.training.tasks.symbols import MOST_MODELS
from tests.faults.recorded import all_calls, some_calls

SOURCES = {
    info.name: Path(info.module_finder.path, f"{info.name.rpartition('.')[2]}.py")
    for info in pkgutil.walk_packages(dsfr.training.__path__, "dsfr.training.")
    if not info.ispkg
}
TASK_ARGUMENTS = ["shard", "memory", "broadcast"]
DOCUMENTS = Path(__file__).parents[2] / "docs"


def functions_of(module):
    return [node for node in ast.parse(SOURCES[module].read_text()).body if isinstance(node, ast.FunctionDef)]


def is_declared(function):
    return any(isinstance(d, ast.Call) and getattr(d.func, "id", "") == "task" for d in function.decorator_list)


def returns_two_bundles(function):
    return function.returns is not None and ast.unparse(function.returns) == "tuple[Bundle, Bundle]"


@pytest.mark.parametrize("module", SOURCES)
def test_every_function_that_is_a_task_is_declared_and_its_module_is_in_the_one_list(module):
    found = [function for function in functions_of(module) if is_declared(function)]
    assert (module in [listed.__name__ for listed in MODULES]) == bool(found)
    for function in functions_of(module):
        if [argument.arg for argument in function.args.args] == TASK_ARGUMENTS and returns_two_bundles(function):
            assert is_declared(function), f"{module}.{function.name} looks like a task: declare it with @task"
    for function in found:
        declared = REGISTRY[function.name]
        assert declared.function is getattr(import_module(module), function.name)


def test_tasks_of_the_engines_are_those_of_the_registry():
    assert TASKS.keys() == REGISTRY.keys()


@pytest.mark.parametrize("name", REGISTRY)
def test_every_declaration_is_whole(name):
    declared = REGISTRY[name]
    assert declared.verb in VERBS
    assert declared.stage in (*STAGES, OTHER)
    assert declared.reveals.endswith(".")
    assert "|" not in declared.reveals
    assert declared.contributes
    for fields in (declared.broadcast, declared.contributes, declared.needs, declared.recalls):
        assert all(isinstance(field, Field) for field in fields.values())
    for field in declared.broadcast.values():  # a number without a range is one that anything may be sent as
        assert field.shape is not None
        assert field.rules or field.shape or field in (number(),)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_declared_array_is_used_by_some_training(name):
    calls, declared = [call for call in all_calls() if call.task == name], REGISTRY[name]
    sent = {array for call in calls for array in call.broadcast}
    answered = {array for call in calls for array in call.contribution}
    remembered = {array for call in calls for array in call.memory}
    written = {key for call in calls for key in call.kept if call.kept[key] is not call.memory.get(key)}
    for array, field in declared.broadcast.items():
        names = {f"{array}_{member}" for member in range(MOST_MODELS)} if field.repeats else {array}
        assert names & sent, array
    assert answered == declared.contributes.keys()
    assert remembered >= {*declared.needs, *declared.recalls}
    assert written <= set(declared.remembers)
    assert set(declared.remembers) <= {key for call in calls for key in call.kept}


@pytest.mark.parametrize("name", REGISTRY)
def test_messages_are_within_the_declared_bounds(name):
    declared = REGISTRY[name]
    for call in some_calls()[name]:
        if any(field.shape is None for field in declared.contributes.values()):
            continue
        most_sent, most_answered = declared.most_bytes(call.shard.n_features)
        assert payload_bytes(call.broadcast) <= most_sent
        assert payload_bytes(call.contribution) <= most_answered


def test_verbs_are_those_that_training_asks_with():
    """Calls of reductions with a task's name in the source, against the declarations."""
    asked = {}
    for path in SOURCES.values():
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            verb = node.func.attr
            if verb in VERBS and isinstance(node.args[0], ast.Constant) and node.args[0].value in REGISTRY:
                asked[node.args[0].value] = verb
    assert {name: REGISTRY[name].verb for name in asked} == asked
    assert asked.keys() == REGISTRY.keys() - {"identify"}  # which checkpoints ask for


def test_every_memory_has_one_owner_that_declares_it():
    for name, key in KEYS.items():
        tree = ast.parse(SOURCES[key.owner].read_text())
        assert any(isinstance(node, ast.Call) and getattr(node.func, "id", "") == "remember" for node in ast.walk(tree))
        with pytest.raises(ValueError, match=f"memory '{name}' of dsfr.other belongs to {key.owner} already"):
            remember("dsfr.other", {name: number()})
    used = {key for declared in REGISTRY.values() for key in (*declared.needs, *declared.recalls, *declared.remembers)}
    assert used <= KEYS.keys()
    assert {key for call in all_calls() for key in call.kept} <= KEYS.keys()


def test_a_task_travels_as_its_name():
    for name, checked in TASKS.items():
        data = pickle.dumps(checked)
        assert len(data) < 200
        assert pickle.loads(data) == checked == TASKS[name]  # noqa: S301


@pytest.fixture
def call():
    return some_calls()["cluster_sums"][0]


def declared_like(function, **changes):
    kept = {name: getattr(REGISTRY["cluster_sums"], name) for name in Declared.__dataclass_fields__}
    return Declared(**kept | {"function": function} | changes)


def test_a_task_that_remembers_what_it_has_not_declared_is_refused(call):
    def greedy(shard, memory, broadcast):
        return {**memory, "seed": np.asarray(1)}, call.contribution

    with pytest.raises(ContributionError, match="refuses its memory: 'seed' is not declared; known are no arrays"):
        declared_like(greedy).run(call.shard, call.memory, call.broadcast)
    declared_like(greedy, remembers=("seed",)).run(call.shard, call.memory, call.broadcast)
    with pytest.raises(ContributionError, match="refuses its memory: 'seed' is -1, and must be from 0 to"):
        declared_like(
            lambda shard, memory, broadcast: ({**memory, "seed": np.asarray(-1)}, call.contribution),
            remembers=("seed",),
        ).run(call.shard, call.memory, call.broadcast)


def test_a_task_never_runs_on_a_broadcast_that_is_refused(call):
    def never(shard, memory, broadcast):
        raise AssertionError("the task has run")

    with pytest.raises(BroadcastError, match="'extra' is not declared; known are 'centers'"):
        declared_like(never).run(call.shard, call.memory, call.broadcast | {"extra": np.zeros(1)})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"verb": "mean"}, "needs a verb of"),
        ({"stage": "later"}, "a stage of"),
        ({"reveals": " "}, "a text for reveals"),
        ({"needs": ("nobody_s",)}, "uses memory that no module owns: nobody_s"),
    ],
)
def test_an_incomplete_declaration_is_refused(changes, message):
    whole = {"verb": "sum", "stage": "survey", "reveals": "Nothing.", "broadcast": {}, "contributes": {}}
    with pytest.raises(ValueError, match=message):
        task(**whole | changes)(lambda shard, memory, broadcast: (memory, {}))
    with pytest.raises(TypeError, match="missing"):
        task(verb="sum", stage="survey")


def without_notes(call):
    return {name: array for name, array in call.memory.items() if name not in KEPT}


def on_distinct_rows(call):
    """The agent's rows without its duplicates, as if it had never had them."""
    X, y = call.shard.collected()
    kept = np.unpackbits(call.memory["kept_rows"], count=len(y)).view(bool)
    return replace(call.shard, rows=ArrayRows(X[kept], y[kept]))


LEAVE_OUT = [name for name, declared in REGISTRY.items() if declared.is_distinct]


@pytest.mark.parametrize("name", LEAVE_OUT)
def test_tasks_that_leave_out_duplicates_never_see_them(name):
    for call in some_calls()[name]:
        if "kept_rows" in call.memory:
            _, expected = TASKS[name](on_distinct_rows(call), without_notes(call), call.broadcast)
            assert call.contribution.keys() == expected.keys()
            for array, values in call.contribution.items():
                np.testing.assert_array_equal(values, expected[array])


def test_duplicates_are_left_out_of_all_tasks_that_compute_with_rows_of_a_training():
    assert REGISTRY.keys() - set(LEAVE_OUT) == {
        "identify",
        "count_duplicates",
        "weigh_duplicates",
        "drop_duplicates",
        "drop_matched",
        "measure",
        "row_moments",
        "clipped_moments",
        "clipped_statistics",
        "count_errors",
        "value_extremes",
        "value_sums",
        "expected_sums",
        "gap_statistics",
    }
    assert {call.task for call in all_calls() if "kept_rows" in call.memory} > {"score", "stack", "left_out_errors"}


def test_notes_on_other_rows_are_refused():
    calls = [call for call in some_calls()["left_out_errors"] if {"kept_rows", "label_groups"} <= call.memory.keys()]
    call = calls[0]
    changes = {"kept_rows": slice(None, -1), "label_groups": slice(None, -1)}
    for name, part in changes.items():
        with pytest.raises(BroadcastError, match=f"task 'left_out_errors' refuses its memory: '{name}' .* train from"):
            TASKS[call.task](call.shard, call.memory | {name: call.memory[name][part]}, call.broadcast)


def test_two_tasks_cannot_have_one_name():
    def cluster_sums(shard, memory, broadcast):
        return memory, {}

    with pytest.raises(ValueError, match="is declared in dsfr"):
        task(verb="sum", stage="clusters", reveals="Nothing.", broadcast={}, contributes={})(cluster_sums)


def test_the_table_of_the_page_on_privacy_is_that_of_the_registry():
    text = (DOCUMENTS / "privacy.md").read_text()
    begin, end = "<!-- tasks: begin -->\n", "\n<!-- tasks: end -->"
    assert text.split(begin)[1].split(end)[0] == privacy_table(), "run `make tables`"
