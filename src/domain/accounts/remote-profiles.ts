import { createCache } from '../../core/cache.ts'
import { ProtocolError } from '../../core/errors.ts'
import { serverOf, type UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { ProfileFields } from '../../store/accounts/profiles.ts'
import type { Clock } from '../clock.ts'
import { MAX_PROFILE_BYTES, MAX_REMEMBERED_PROFILES } from '../limits.ts'

/**
 * The profile of a remote user, from their server (server-server API, `GET query/profile`). Clients request it often, and anybody may, so
 * an answer is cached for a minute.
 *
 * @throws ProtocolError `M_NOT_FOUND` if the server does not know the user; 502 `M_UNKNOWN` if the server does not answer
 */
export type AskProfile = (userId: UserId) => Promise<ProfileFields>

const KEPT_MS = 60_000

/** Clients assume without a check that name and avatar are text. */
const TEXTS = new Set(['displayname', 'avatar_url'])

const readable = (profile: JsonObject): ProfileFields =>
  Object.fromEntries(Object.entries(profile).filter(([name, value]) => !TEXTS.has(name) || typeof value === 'string'))

interface Remembered {
  readonly until: number
  readonly profile: Promise<ProfileFields>
}

export function createRemoteProfiles(deps: {
  readonly peers: Pick<Peers, 'query'>
  readonly clock: Clock
}): AskProfile {
  const { peers, clock } = deps
  const remembered = createCache<UserId, Remembered>(MAX_REMEMBERED_PROFILES)

  async function ask(userId: UserId): Promise<ProfileFields> {
    const profile = await peers.query(serverOf(userId), `query/profile?user_id=${encodeURIComponent(userId)}`)
    if (Buffer.byteLength(JSON.stringify(profile)) <= MAX_PROFILE_BYTES) return readable(profile)
    throw new ProtocolError('M_UNKNOWN', `The profile of ${userId} is too large to be shown.`, { status: 502 })
  }

  return (userId) => {
    const known = remembered.get(userId)
    if (known && known.until > clock.now()) return known.profile
    const profile = ask(userId)
    remembered.set(userId, { until: clock.now() + KEPT_MS, profile })
    profile.catch(() => remembered.delete(userId))
    return profile
  }
}
