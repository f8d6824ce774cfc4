import { readScope } from '../../core/oauth/scope.ts'
import { requesterOf } from '../../domain/oauth/own-account.ts'
import type { Services } from '../../domain/services.ts'
import type { Visitor } from '../account/visitor.ts'

/** What a person should know of the session that an app asks for, beside who asks. */
export interface AskedSession {
  readonly device: string
  /** The name of the session that it takes the place of. */
  readonly replaces: string | undefined
  /** Whether it can administer the server, because its user can. */
  readonly administers: 'yes' | ''
}

export async function askedSession(
  { oauth, admin }: Services,
  text: string,
  { session }: Pick<Visitor, 'session'>,
): Promise<AskedSession> {
  const scope = readScope(text)
  if ('problem' in scope || session === undefined) return { device: '', replaces: undefined, administers: '' }
  const { deviceId } = scope
  const [present, isAdmin] = await Promise.all([
    oauth.ownAccount.sessions(session.userNid),
    admin.operators.isAdmin(requesterOf(session)),
  ])
  const replaces = present.find((each) => each.deviceId === deviceId)?.name
  return { device: deviceId, replaces, administers: isAdmin ? 'yes' : '' }
}
