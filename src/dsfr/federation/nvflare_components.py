"""What runs inside NVFlare's processes: the coordinator's workflow and the owners' executor, installed with dsfr."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dsfr.engines import EngineError, RefusedError
from dsfr.federation.copies import refuse_copied
from dsfr.federation.engine import Replies, raising
from dsfr.federation.fit import federated_check, federated_fit
from dsfr.federation.owner_site import OwnerSite
from dsfr.federation.progress import FitProgress
from dsfr.federation.roster import Roster

try:
    from nvflare.apis.controller_spec import Task
    from nvflare.apis.event_type import EventType
    from nvflare.apis.executor import Executor
    from nvflare.apis.impl.controller import Controller
    from nvflare.apis.shareable import Shareable
except ImportError:  # NVFlare is an extra, and without it nothing here runs; the module itself can still be read
    Executor = Controller = object

TOPIC, PROGRESS = "dsfr", "dsfr_progress"
"""Topics: questions to owners, and the lead's question how far the fit is."""
READY = "ready"
READY_SECONDS = 60
ROSTER = "roster.toml"
"""File in the folder ``local`` of the coordinator's kit."""
MODEL, ERROR, ANSWERS = "model.dsfr", "error.txt", "answers.json"
"""Files of a finished job."""


class FitExecutor(Executor):  # type: ignore[misc]
    """Answers the coordinator's questions at an owner."""

    def __init__(self) -> None:
        super().__init__()
        self._site: OwnerSite | None = None
        self._problem = ""

    def handle_event(self, event_type: str, fl_ctx: Any) -> None:
        """Begin: read the owner's own configuration, and listen."""
        if event_type != EventType.START_RUN:
            return
        try:
            self._site = OwnerSite(Path(fl_ctx.get_workspace().get_site_config_dir()).parent)
        except (ValueError, OSError) as error:
            self._problem = str(error)
        fl_ctx.get_engine().register_aux_message_handler(topic=TOPIC, message_handle_func=self._answer)

    def execute(self, task_name: str, shareable: Any, fl_ctx: Any, abort_signal: Any) -> Any:
        """Say that the handler is there."""
        return Shareable()

    def _answer(self, topic: str, request: Any, fl_ctx: Any) -> Any:
        try:
            if self._site is None:
                raise EngineError(self._problem)
            return Shareable({"data": self._site.answer(request.get("data", b""))})
        except Exception as error:  # anything: NVFlare would send a trace of it
            text = str(error) if isinstance(error, EngineError) else f"{type(error).__name__} at this owner"
            return Shareable({"error": text, "is_refusal": isinstance(error, RefusedError)})


class FitController(Controller):  # type: ignore[misc]
    """Trains over all owners of the roster, or checks their tables, and leaves the result in the job's folder.

    Parameters
    ----------
    plan : str
        The plan of `fit_plan` as JSON in hexadecimal digits: NVFlare takes braces in texts for its own variables.
    round_seconds : float
        Time within which every owner must answer a question.
    is_check : bool
        Whether tables are checked only.
    """

    def __init__(self, plan: str, round_seconds: float = 60.0, is_check: bool = False) -> None:
        super().__init__()
        self._plan, self._seconds, self._is_check = json.loads(bytes.fromhex(plan)), round_seconds, is_check
        self._progress = FitProgress()

    def start_controller(self, fl_ctx: Any) -> None:
        """Nothing to prepare."""

    def stop_controller(self, fl_ctx: Any) -> None:
        """Nothing to clean up."""

    def control_flow(self, abort_signal: Any, fl_ctx: Any) -> None:
        """Wait until all owners listen, then train."""
        kit = Path(fl_ctx.get_workspace().get_site_config_dir()).parent
        folder = Path(fl_ctx.get_workspace().get_run_dir(fl_ctx.get_job_id()))
        fl_ctx.get_engine().register_app_command(PROGRESS, lambda *_: self._progress.as_dict())
        try:
            roster = Roster.read(kit / "local" / ROSTER)
            names, run = sorted(roster.fingerprints), fl_ctx.get_job_id()
            refuse_copied(kit, names)
            self._wait_for_owners(roster, abort_signal, fl_ctx)
            with ThreadPoolExecutor(len(names)) as threads:
                replies = self._replies(names, threads, abort_signal, fl_ctx)
                if self._is_check:
                    (folder / ANSWERS).write_text(json.dumps(federated_check(self._plan, replies, run)))
                else:
                    checkpoints = kit / "local" / "checkpoints"
                    federated_fit(self._plan, roster, raising(replies), run, checkpoints).save(folder / MODEL)
        except Exception as error:
            (folder / ERROR).write_text(f"{error}\n" if str(error) else f"{type(error).__name__}\n")
            self.system_panic(str(error), fl_ctx)

    def process_result_of_unknown_task(self, client: Any, task_name: str, client_task_id: str, *rest: Any) -> None:
        """Results of tasks that this controller has not asked for are not used."""

    def _wait_for_owners(self, roster: Roster, abort_signal: Any, fl_ctx: Any) -> None:
        task = Task(name=READY, data=Shareable(), timeout=READY_SECONDS)
        names = sorted(roster.fingerprints)
        self.broadcast_and_wait(
            task=task, fl_ctx=fl_ctx, targets=names, min_responses=len(names), abort_signal=abort_signal
        )
        here = {one.client.name for one in task.client_tasks if one.result is not None}
        missing = sorted(set(names) - here)
        if missing:
            raise EngineError(f"{', '.join(missing)} did not join within {READY_SECONDS} s")

    def _replies(self, names: list[str], threads: ThreadPoolExecutor, abort_signal: Any, fl_ctx: Any) -> Replies:
        """Asks all owners at once, each in a thread of its own, so that it is known who has not answered yet."""
        engine = fl_ctx.get_engine()

        def one(name: str, data: bytes) -> Any:
            found = engine.send_aux_request(
                targets=[name], topic=TOPIC, request=Shareable({"data": data}), timeout=self._seconds, fl_ctx=fl_ctx
            )
            self._progress.answered(name)
            return (found or {}).get(name)

        def ask(data: bytes) -> dict[str, bytes | EngineError]:
            if abort_signal.triggered:
                raise EngineError("the fit was stopped: run it again to resume it")
            self._progress.ask(data, names)
            found = list(threads.map(lambda name: one(name, data), names))
            read = {name: _read_reply(name, reply) for name, reply in zip(names, found, strict=True)}
            return {name: reply for name, reply in read.items() if reply is not None}

        return ask


def _read_reply(name: str, reply: Any) -> bytes | EngineError | None:
    """The bytes of an owner's reply, its refusal, or nothing if it has not answered."""
    if not isinstance(reply, dict) or not ("data" in reply or "error" in reply):
        return None
    if "error" in reply:
        kind = RefusedError if reply.get("is_refusal") is True else EngineError
        return kind(f"{name} refuses: {str(reply['error'])[:1000]}")
    data: bytes = reply["data"]
    return data


def job_files(
    plan: Mapping[str, Any], names: list[str], round_seconds: float, is_check: bool = False
) -> dict[str, str]:
    """The files of a job: settings, and not a line of code."""
    module = __name__
    meta = {
        "name": "dsfr check" if is_check else "dsfr fit",
        "resource_spec": {},
        "min_clients": len(names),
        "mandatory_clients": names,
        "deploy_map": {"app": ["@ALL"]},
    }
    filters: dict[str, Any] = {"task_data_filters": [], "task_result_filters": [], "components": []}
    told = json.dumps(dict(plan)).encode().hex()
    arguments = {"plan": told, "round_seconds": round_seconds, "is_check": is_check}
    server = {"id": "fit", "path": f"{module}.FitController", "args": arguments}
    client = {"tasks": [READY], "executor": {"path": f"{module}.FitExecutor", "args": {}}}
    return {
        "meta.json": json.dumps(meta),
        "app/config/config_fed_server.json": json.dumps({"format_version": 2, "workflows": [server], **filters}),
        "app/config/config_fed_client.json": json.dumps({"format_version": 2, "executors": [client], **filters}),
    }
