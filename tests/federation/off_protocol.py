"""A coordinator that runs changed software: it grants itself every right, and tells owners that none is needed.

Run as a program with the arguments of NVFlare's server.
"""

from __future__ import annotations

import sys


def main() -> int:
    from nvflare.fuel.f3.mpm import MainProcessMonitor
    from nvflare.fuel.sec.authz import AuthorizationService
    from nvflare.private.fed.app.server import server_train
    from nvflare.private.fed.server import shell_cmd

    AuthorizationService.authorize = staticmethod(lambda context: (True, ""))
    honest = shell_cmd.new_message
    shell_cmd.new_message = lambda conn, topic, body, require_authz: honest(conn, topic, body, False)
    shell_cmd._FileCmdExecutor.validate_shell_command = lambda *_: ""
    arguments = server_train.parse_arguments()
    return MainProcessMonitor.run(main_func=server_train.main, run_dir=arguments.workspace, args=arguments)


if __name__ == "__main__":
    sys.exit(main())
