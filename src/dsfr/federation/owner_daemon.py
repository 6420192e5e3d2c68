"""An owner's daemon: NVFlare's, without the requests that a fit does not need.

NVFlare lets the sender of a request say whether it needs a right. A coordinator that runs changed software says that it
does not, and then reads any file of the owner with `cat`, whatever its kit allows. So what is not needed is not there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

try:
    from nvflare.private.admin_defs import error_reply
    from nvflare.private.defs import RequestHeader, TrainingTopic
    from nvflare.private.fed.client.admin import RequestProcessor
except ImportError:  # NVFlare is an extra, and without it nothing here runs; the module itself can still be read
    RequestProcessor = object

TOPICS = ("CHECK_RESOURCE", "CANCEL_RESOURCE", "DEPLOY", "START_JOB", "ABORT", "CHECK_STATUS", "NOTIFY_JOB_STATUS")
"""What starts, ends and watches a job; NVFlare's names of them."""
_JOB = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class JobRequest(RequestProcessor):  # type: ignore[misc]
    """A request about a job with a name like those that NVFlare gives.

    A job's folder has its name and is emptied before; one called ``local`` would be the owner's journal.
    """

    def __init__(self, request: Any) -> None:
        self._request = request

    def get_topics(self) -> list[str]:
        """Names of the requests."""
        topics: list[str] = self._request.get_topics()
        return topics

    def process(self, req: Any, app_ctx: Any) -> Any:
        """The answer, or a refusal."""
        job = req.get_header(RequestHeader.JOB_ID, "")
        if job and not (isinstance(job, str) and _JOB.fullmatch(job)):
            return error_reply("this is no name of a job")
        return self._request.process(req, app_ctx)


def needed(requests: Iterable[Any]) -> list[JobRequest]:
    """Those of NVFlare's requests that a fit needs, each with its check."""
    allowed = {getattr(TrainingTopic, topic) for topic in TOPICS}
    return [JobRequest(request) for request in requests if set(request.get_topics()) <= allowed]


def main() -> int:
    """Run NVFlare's daemon with the arguments of this process."""
    from nvflare.fuel.f3.mpm import MainProcessMonitor
    from nvflare.private.fed.app.client import client_train
    from nvflare.private.fed.app.utils import version_check
    from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors

    ClientRequestProcessors.request_processors[:] = needed(ClientRequestProcessors.request_processors)
    version_check()
    arguments = client_train.parse_arguments()
    code: int = MainProcessMonitor.run(main_func=client_train.main, run_dir=arguments.workspace, args=arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())
