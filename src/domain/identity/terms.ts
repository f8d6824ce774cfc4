import type { Config } from '../../config/schema.ts'
import { createCache } from '../../core/cache.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Database } from '../../store/db/db.ts'
import { countOtherAcceptedUrls, findAcceptedUrls, insertAcceptedUrls } from '../../store/identity/accepted-urls.ts'
import type { Clock } from '../clock.ts'
import { MAX_ACCEPTED_URLS_AT_ONCE, MAX_FOREIGN_ACCEPTED_URLS, MAX_URL_CHARS } from '../limits.ts'
import { checkText } from '../text.ts'
import { identityPolicies, policyMap, type ReadablePolicy, readPolicy } from './policies.ts'

/** Policies and their acceptance (identity service API, "Terms of service"). */
export interface Terms {
  /** The policy map of `GET terms`. */
  readonly policies: JsonObject
  /**
   * Adds to the policies that a user has accepted. Unknown URLs are stored too, up to a limit.
   * @throws ProtocolError `M_INVALID_PARAM`
   */
  accept(userId: UserId, urls: readonly string[]): Promise<void>
  /** @throws ProtocolError `M_TERMS_NOT_SIGNED` if there is a policy that the user has accepted in no language */
  require(userId: UserId): void | Promise<void>
  /** Forgets that a user has accepted, because the data was erased. */
  forget(userId: UserId): void
  /** A policy to read; undefined if this server does not show it. */
  read(wanted: Parameters<typeof readPolicy>[1]): Promise<ReadablePolicy | undefined>
}

const MAX_REMEMBERED = 50_000

export function createTerms(deps: {
  readonly config: Pick<Config, 'identity' | 'public_base_url' | 'listen'>
  readonly db: Database
  readonly clock: Clock
}): Terms {
  const { db, clock } = deps
  const policies = identityPolicies(deps.config)
  const urlsOfPolicies = policies.map(({ texts }) => texts.map(({ url }) => url))
  const allUrls = urlsOfPolicies.flat()
  // A user who has accepted everything is not looked up again until their data is erased.
  const satisfied = createCache<UserId, true>(MAX_REMEMBERED)

  async function check(userId: UserId): Promise<void> {
    const accepted = await findAcceptedUrls(db, userId, allUrls)
    if (!urlsOfPolicies.every((urls) => urls.some((url) => accepted.includes(url)))) {
      throw new ProtocolError('M_TERMS_NOT_SIGNED', 'Please accept the terms of this service first.')
    }
    satisfied.set(userId, true)
  }

  return {
    policies: policyMap(policies),
    async accept(userId, urls) {
      if (urls.length > MAX_ACCEPTED_URLS_AT_ONCE) {
        throw new ProtocolError('M_INVALID_PARAM', `'user_accepts' has more than ${MAX_ACCEPTED_URLS_AT_ONCE} items.`)
      }
      for (const url of urls) checkText('user_accepts', url, MAX_URL_CHARS)
      const own = urls.filter((url) => allUrls.includes(url))
      const foreign = [...new Set(urls.filter((url) => !allUrls.includes(url)))]
      await db.tx(async (tx) => {
        const known = foreign.length === 0 ? 0 : await countOtherAcceptedUrls(tx, userId, allUrls)
        const kept = foreign.slice(0, Math.max(0, MAX_FOREIGN_ACCEPTED_URLS - known))
        await insertAcceptedUrls(tx, userId, [...new Set([...own, ...kept])], clock.now())
      })
    },
    require: (userId) => (policies.length === 0 || satisfied.has(userId) ? undefined : check(userId)),
    forget: (userId) => void satisfied.delete(userId),
    read: (wanted) => readPolicy(policies, wanted),
  }
}
