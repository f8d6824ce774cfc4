import { ProtocolError } from '../../core/errors.ts'
import type { Operator } from '../../domain/admin/operator.ts'
import type { Services } from '../../domain/services.ts'
import { recordAct } from '../../http/record-act.ts'
import { CLIENT_CODES, type Role } from '../../http/role.ts'
import { consoleCaller, isConsoleToken } from '../console/console-session.ts'

/** The callers of the admin API: administrators, with a session of theirs or from the console, and operators on the command line. */
export function adminRole(services: Services): Role<Operator> {
  const { sessions, admin } = services
  return {
    ...identityAdminRole(services),
    authenticate: (token, _as, cookie) =>
      isConsoleToken(token) ? consoleCaller(services, token, cookie) : admin.operators.find(token),
    admit(operator, { options }) {
      if (options.grave && operator.isRecent === false) throw proofNeeded()
    },
    seen: ({ requester }, ip, userAgent) => requester && sessions.seen(requester, ip, userAgent),
  }
}

/** Where there are no accounts, only operators on the command line call. */
export function identityAdminRole({ config, admin }: Services): Role<Operator> {
  return {
    codes: CLIENT_CODES,
    maxBodyBytes: config.limits.max_body_bytes,
    headers: { 'cache-control': 'no-store' },
    authenticate: (token) => admin.operators.find(token),
    perform: (endpoint, request, handle) => recordAct(admin.audit, endpoint, request, handle),
  }
}

/** The console asks for a password, or leads to a sign-in, where it is told this. */
function proofNeeded(): ProtocolError {
  const words = 'This is a grave act, and you signed in a while ago. Prove again that it is you.'
  return new ProtocolError('M_FORBIDDEN', words, { extra: { proof_needed: true } })
}
