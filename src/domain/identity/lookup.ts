import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import { LOOKUP_ALGORITHMS, type LookupAlgorithm, readPlainLookupEntry } from '../../core/lookup-hash.ts'
import { normaliseAddress } from '../../core/threepid.ts'
import type { Database } from '../../store/db/db.ts'
import { findBinding, findBindings, type ThreepidRow } from '../../store/identity/bindings.ts'
import { findPepper } from '../../store/identity/peppers.ts'
import { type SignedAssociation, signedAssociation } from './association.ts'
import type { Threepid } from './bindings.ts'
import { createHashLookup } from './hash-lookup.ts'
import type { IdentityMetrics } from './identity-metrics.ts'
import type { IdentityKeys } from './keys.ts'
import type { LookupQuota } from './lookup-quota.ts'

export interface HashDetails {
  readonly algorithms: readonly LookupAlgorithm[]
  readonly lookup_pepper: string
}

/** Finds users by addresses, never the other way (identity service API, "Association lookup"). */
export interface Lookup {
  hashDetails(): Promise<HashDetails>
  /**
   * The users of the bound entries. An invalid entry matches nothing.
   *
   * @param who whose quota it counts against: a user, or a network address if there is no user
   * @throws ProtocolError `M_INVALID_PARAM` for another algorithm, `M_INVALID_PEPPER` with the current details, 400 `M_TOO_LARGE`,
   *   `M_LIMIT_EXCEEDED`
   */
  users(
    asked: { readonly algorithm: string; readonly pepper: string; readonly addresses: readonly string[] },
    who: string,
  ): Promise<ReadonlyMap<string, UserId>>
  /** The signed association of one address. @throws ProtocolError `M_LIMIT_EXCEEDED` */
  association(threepid: Threepid, who: string): Promise<SignedAssociation | undefined>
  /**
   * The users of the bound addresses, with each address as the requester wrote it. @throws ProtocolError 400 `M_TOO_LARGE`,
   * `M_LIMIT_EXCEEDED`
   */
  usersOf(threepids: readonly Threepid[], who: string): Promise<readonly (readonly [string, string, UserId])[]>
  /** How many bindings are in memory. */
  remembered(): number
  close(): void
}

/** The grammar of a pepper (identity service API, "Association lookup"). Postgres cannot query some other texts. */
const PEPPER = /^[a-zA-Z0-9]+$/

const keyOf = ({ medium, address }: ThreepidRow): string => `${medium} ${address}`

/** Postgres stores no NUL, so nobody has bound an address with one. */
function isStorable({ medium, address }: Threepid): boolean {
  return !medium.includes('\0') && !address.includes('\0')
}

export function createLookup(deps: {
  readonly config: Pick<Config, 'identity'>
  readonly db: Database
  readonly quota: LookupQuota
  readonly keys: Pick<IdentityKeys, 'sign'>
  readonly metrics: Pick<IdentityMetrics, 'lookup'>
  readonly log: Logger
}): Lookup {
  const { db, quota, keys, metrics } = deps
  const hashes = createHashLookup(deps)
  const { max_addresses: maxAddresses, allow_plain } = deps.config.identity.lookup
  const algorithms = LOOKUP_ALGORITHMS.filter((algorithm) => algorithm !== 'none' || allow_plain)

  async function spend(who: string, count: number): Promise<void> {
    if (count > maxAddresses) {
      throw new ProtocolError('M_TOO_LARGE', `At most ${maxAddresses} addresses can be looked up at once.`, {
        status: 400,
      })
    }
    await quota.spend(who, count)
  }

  function checkPepper(given: string, pepper: string): void {
    if (given === pepper) return
    throw new ProtocolError('M_INVALID_PEPPER', 'The pepper has changed. Hash the addresses anew with this one.', {
      extra: { algorithm: 'sha256', lookup_pepper: pepper, algorithms },
    })
  }

  async function byHash(pepper: string, entries: readonly string[]): Promise<ReadonlyMap<string, UserId>> {
    if (!PEPPER.test(pepper)) checkPepper(pepper, (await findPepper(db)).pepper)
    const { pepper: current, users, source } = await hashes.find(pepper, entries)
    checkPepper(pepper, current)
    metrics.lookup(source, entries.length, users.size)
    return users
  }

  /** The users of addresses, each under its own spelling of the address. */
  async function byAddress(threepids: readonly Threepid[]): Promise<(threepid: Threepid) => UserId | undefined> {
    const wanted = threepids.filter(isStorable).map(normalised)
    const users = new Map((await findBindings(db, wanted)).map((row) => [keyOf(row), row.user_id]))
    metrics.lookup('plain', threepids.length, users.size)
    return (threepid) => users.get(keyOf(normalised(threepid)))
  }

  async function byPlainEntry(pepper: string, entries: readonly string[]): Promise<ReadonlyMap<string, UserId>> {
    checkPepper(pepper, (await findPepper(db)).pepper)
    const read = entries.flatMap((entry) => {
      const threepid = readPlainLookupEntry(entry)
      return threepid === undefined ? [] : [{ entry, threepid }]
    })
    const userOf = await byAddress(read.map(({ threepid }) => threepid))
    return new Map(
      read.flatMap(({ entry, threepid }): [string, UserId][] => {
        const user = userOf(threepid)
        return user === undefined ? [] : [[entry, user]]
      }),
    )
  }

  return {
    hashDetails: async () => ({ algorithms, lookup_pepper: (await findPepper(db)).pepper }),
    async users({ algorithm, pepper, addresses }, who) {
      const known = algorithms.find((each) => each === algorithm)
      if (known === undefined)
        throw new ProtocolError('M_INVALID_PARAM', `'algorithm' must be one of ${algorithms.join(', ')}.`)
      await spend(who, addresses.length)
      return known === 'sha256' ? byHash(pepper, addresses) : byPlainEntry(pepper, addresses)
    },
    async association(threepid, who) {
      await spend(who, 1)
      const row = isStorable(threepid) ? await findBinding(db, normalised(threepid)) : undefined
      metrics.lookup('plain', 1, row === undefined ? 0 : 1)
      return row && signedAssociation(keys, row)
    },
    async usersOf(threepids, who) {
      await spend(who, threepids.length)
      const userOf = await byAddress(threepids)
      return threepids.flatMap((threepid): [string, string, UserId][] => {
        const user = userOf(threepid)
        return user === undefined ? [] : [[threepid.medium, threepid.address, user]]
      })
    },
    remembered: hashes.remembered,
    close: hashes.close,
  }
}

function normalised({ medium, address }: Threepid): ThreepidRow {
  return { medium, address: normaliseAddress(medium, address) }
}
