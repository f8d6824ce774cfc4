import type { Requester } from '../../domain/accounts/requester.ts'
import type { StandbySessions } from '../../domain/standby/sessions.ts'
import { CLIENT_CODES, type Role } from '../../http/role.ts'
import { mediaEndpoints } from '../media/index.ts'
import { clientEndpoints } from './index.ts'

/** What a node that stands by answers, if it can. */
export const anywhereEndpoints = [...clientEndpoints, ...mediaEndpoints].filter(({ options }) => options.anywhere)

/** What it passes on together with other requests. */
export const batchedEndpoints = clientEndpoints.filter(({ options }) => options.batched)

/** The callers at a node that stands by: holders of our own tokens. It records nothing of them. */
export function standbyRole(sessions: StandbySessions, maxBodyBytes: number): Role<Requester> {
  return { codes: CLIENT_CODES, maxBodyBytes, authenticate: sessions.find }
}
