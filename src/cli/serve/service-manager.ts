import { execFile } from 'node:child_process'
import type { Logger } from 'pino'

const ANSWER_MS = 10_000

/**
 * Says to the service manager that started this process that it is ready, if it wants to hear that (`Type=notify` in a unit of systemd).
 * The message is a datagram to a unix socket, which Node.js cannot send: systemd's own program does. What fails is only logged; the
 * manager then waits for as long as its unit says.
 */
export function notifyReady(env: Readonly<Record<string, string | undefined>>, log: Logger, status = 'serving'): void {
  const { NOTIFY_SOCKET, PATH } = env
  if (NOTIFY_SOCKET === undefined || NOTIFY_SOCKET === '') return
  const options = { env: { NOTIFY_SOCKET, PATH }, timeout: ANSWER_MS }
  execFile('systemd-notify', ['--ready', `--status=${status}`], options, (error) => {
    if (error !== null)
      log.warn(
        { reason: error.message },
        'systemd could not be notified; use Type=exec where systemd-notify is missing',
      )
  })
}
