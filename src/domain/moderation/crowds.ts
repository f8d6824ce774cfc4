import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { type CrowdCriteria, type CrowdMember, findCrowd, restrainCrowd } from '../../store/accounts/crowds.ts'
import type { Database } from '../../store/db/db.ts'
import type { Sessions } from '../accounts/sessions.ts'
import { requireLocal } from '../admin/local-account.ts'
import { MAX_CROWD } from '../limits/moderation.ts'
import type { ShadowBans } from './shadow-bans.ts'

/** Which accounts an act concerns: those that meet all criteria. */
export interface Crowd extends Omit<CrowdCriteria, 'like'> {
  /** A pattern of the localpart with `*` and `?`. */
  readonly name: string | undefined
}

export interface CrowdRestraint {
  readonly isLocked?: boolean
  readonly isSuspended?: boolean
  readonly isShadowBanned?: boolean
}

/** Many accounts at once, as a wave of spam has them. Administrators and users of application services are never among them. */
export interface Crowds {
  /** @throws ProtocolError `M_INVALID_PARAM` without any criterion, and for users of other servers; `M_TOO_LARGE` for too many accounts */
  find(crowd: Crowd): Promise<readonly CrowdMember[]>
  /** It takes effect with their next requests. Returns how many. @throws ProtocolError as `find` */
  restrain(crowd: Crowd, wish: CrowdRestraint): Promise<number>
}

export function createCrowds(deps: {
  readonly config: Pick<Config, 'server_name'>
  readonly db: Database
  readonly sessions: Pick<Sessions, 'forget'>
  readonly shadowBans: Pick<ShadowBans, 'changed'>
}): Crowds {
  const { config, db, sessions, shadowBans } = deps

  async function find({ name, ...criteria }: Crowd): Promise<readonly CrowdMember[]> {
    if (name === undefined && Object.values(criteria).every((value) => value === undefined)) {
      throw new ProtocolError('M_INVALID_PARAM', 'Say whom: without any criterion this would be everybody.')
    }
    for (const userId of criteria.userIds ?? []) requireLocal(userId, config.server_name)
    const like = name === undefined ? undefined : likeOf(name)
    const crowd = await findCrowd({ query: db.scan }, { ...criteria, like }, MAX_CROWD + 1)
    if (crowd.length <= MAX_CROWD) return crowd
    throw new ProtocolError('M_TOO_LARGE', `One act concerns at most ${MAX_CROWD} accounts: say more of whom.`)
  }

  return {
    find,
    async restrain(crowd, wish) {
      const nids = (await find(crowd)).map(({ user_nid }) => user_nid)
      const restrained = await db.tx((tx) => restrainCrowd(tx, nids, wish))
      for (const { user_nid } of restrained) {
        if (wish.isShadowBanned !== undefined) shadowBans.changed(user_nid, wish.isShadowBanned)
        sessions.forget(user_nid)
      }
      return restrained.length
    },
  }
}

/** A glob as LIKE has it. */
function likeOf(glob: string): string {
  const escaped = glob.toLowerCase().replace(/[\\%_]/g, '\\$&')
  return escaped.replaceAll('*', '%').replaceAll('?', '_')
}
