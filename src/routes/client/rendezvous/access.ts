import type { Config } from '../../../config/schema.ts'
import { ProtocolError } from '../../../core/errors.ts'

/** Whether this caller may begin a session. */
export function mayCreate({ qr_login }: Pick<Config, 'qr_login'>, requester: object | undefined): boolean {
  return qr_login.rendezvous === 'anyone' || (qr_login.rendezvous === 'users' && requester !== undefined)
}

/** @throws ProtocolError `M_UNRECOGNIZED` where there are no sessions */
export function mustBeServed({ qr_login }: Pick<Config, 'qr_login'>): void {
  if (qr_login.rendezvous !== 'nobody') return
  throw new ProtocolError('M_UNRECOGNIZED', 'This server has no rendezvous sessions.')
}

/** @throws ProtocolError `M_UNRECOGNIZED`, `M_FORBIDDEN` */
export function mustMayCreate(config: Pick<Config, 'qr_login'>, requester: object | undefined): void {
  mustBeServed(config)
  if (mayCreate(config, requester)) return
  throw new ProtocolError('M_FORBIDDEN', 'Only those who are signed in may begin a rendezvous session here.')
}
