import type { Operator } from '../../domain/admin/operator.ts'
import type { Services } from '../../domain/services.ts'
import { recordAct } from '../../http/record-act.ts'
import { CLIENT_CODES, type Role } from '../../http/role.ts'

/** The callers of the admin API: administrators, and operators on the command line. */
export function adminRole(services: Services): Role<Operator> {
  const { config, sessions } = services
  return {
    codes: CLIENT_CODES,
    maxBodyBytes: config.limits.max_body_bytes,
    headers: { 'cache-control': 'no-store' },
    authenticate: (token) => services.admin.operators.find(token),
    seen: ({ requester }, ip, userAgent) => requester && sessions.seen(requester, ip, userAgent),
    perform: (endpoint, request, handle) => recordAct(services.admin.audit, endpoint, request, handle),
  }
}
