import { ProtocolError } from '../../core/errors.ts'
import { isUserId, type UserId } from '../../core/ids.ts'
import { isEmailAddress, normaliseAddress } from '../../core/threepid.ts'
import type { Database } from '../../store/db/db.ts'
import { listAcceptedUrls } from '../../store/identity/accepted-urls.ts'
import { findIdentityAccount } from '../../store/identity/accounts.ts'
import {
  type BindingRow,
  findBindings,
  findBindingsOf,
  lockAddress,
  type ThreepidRow,
} from '../../store/identity/bindings.ts'
import { withdrawDeliveries } from '../../store/identity/invites.ts'
import { deleteLookupsOf } from '../../store/identity/lookup-quota.ts'
import {
  deleteInvitesBy,
  deleteInvitesTo,
  listPendingInvitesBy,
  listPendingInvitesTo,
} from '../../store/identity/pending-invites.ts'
import { deleteSessionsOf, findSessionsOf } from '../../store/identity/sessions.ts'
import type { IdentityAccounts } from './accounts.ts'
import type { Bindings } from './bindings.ts'
import { type PendingInvitation, viewOf } from './invitation-desk.ts'
import type { Terms } from './terms.ts'

interface BoundAddress extends ThreepidRow {
  readonly user_id: UserId
  readonly bound_ts: number
}

interface AddressSession extends ThreepidRow {
  /** The realm in which it was begun: `identity`, or one of the homeserver's own. */
  readonly realm: string
  readonly created_ts: number
  readonly validated_ts: number | null
  readonly expires_ts: number
}

/** The stored data of one person. Times are in milliseconds. */
export interface KeptOfPerson {
  /** Null for an address, and for a user without an account. */
  readonly account: {
    readonly created_ts: number
    readonly tokens: number
    readonly used_ts: number | null
    readonly accepted: readonly { readonly url: string; readonly accepted_ts: number }[]
  } | null
  readonly bindings: readonly BoundAddress[]
  readonly sessions: readonly AddressSession[]
  /** Invitations of the addresses; for a user also those that the user sent. */
  readonly invitations: readonly PendingInvitation[]
}

/** What was removed. */
export interface ErasedOfPerson {
  readonly account: boolean
  readonly tokens: number
  readonly bindings: readonly BoundAddress[]
  readonly sessions: number
  readonly invitations: number
}

/**
 * The identity service's data about one person, named by an email address, an international phone number or a user id. For a user this is
 * the account and the data of each bound address.
 */
export interface PersonDesk {
  /** @throws ProtocolError `M_INVALID_PARAM` if it names nobody, `M_NOT_FOUND` if nothing is stored */
  show(name: string): Promise<KeptOfPerson>
  /** Deletes all of it. No lookup finds the person any more. @throws ProtocolError as `show` */
  erase(name: string): Promise<ErasedOfPerson>
}

type Person = { readonly userId: UserId } | { readonly threepid: ThreepidRow }

/** @throws ProtocolError `M_INVALID_PARAM` */
function readPerson(name: string): Person {
  if (isUserId(name) && !name.includes('\0')) return { userId: name }
  const email = normaliseAddress('email', name)
  if (isEmailAddress(email)) return { threepid: { medium: 'email', address: email } }
  const digits = normaliseAddress('msisdn', name)
  if (/^[1-9]\d{4,14}$/.test(digits)) return { threepid: { medium: 'msisdn', address: digits } }
  throw new ProtocolError(
    'M_INVALID_PARAM',
    'This is no email address, no phone number with the code of its country (+44...) and no user id (@alice:example.org).',
  )
}

const boundView = ({ medium, address, user_id, bound_at }: BindingRow): BoundAddress => ({
  ...{ medium, address, user_id, bound_ts: bound_at },
})

export function createPersonDesk({
  db,
  accounts,
  terms,
  bindings,
}: {
  readonly db: Database
  readonly accounts: Pick<IdentityAccounts, 'erase'>
  readonly terms: Pick<Terms, 'forget'>
  readonly bindings: Pick<Bindings, 'erase'>
}): PersonDesk {
  function nothing(name: string): ProtocolError {
    return new ProtocolError('M_NOT_FOUND', `The identity service keeps nothing of ${name}.`)
  }

  async function accountOf(userId: UserId): Promise<KeptOfPerson['account']> {
    const row = await findIdentityAccount(db, userId)
    if (row === undefined) return null
    const accepted = await listAcceptedUrls(db, userId)
    return {
      ...{ created_ts: row.created_at, tokens: row.tokens, used_ts: row.used_at },
      accepted: accepted.map(({ url, accepted_at }) => ({ url, accepted_ts: accepted_at })),
    }
  }

  async function sessionsOf(threepid: ThreepidRow): Promise<AddressSession[]> {
    const rows = await findSessionsOf(db, threepid)
    return rows.map(({ medium, address, realm, created_at, validated_at, expires_at }) => ({
      ...{ medium, address, realm, created_ts: created_at, validated_ts: validated_at, expires_ts: expires_at },
    }))
  }

  /** Deletes what belongs to an address, whoever owns it. */
  async function eraseAddress(threepid: ThreepidRow): Promise<Pick<ErasedOfPerson, 'sessions' | 'invitations'>> {
    return db.tx(async (tx) => {
      await lockAddress(tx, threepid)
      await withdrawDeliveries(tx, threepid)
      return { invitations: await deleteInvitesTo(tx, threepid), sessions: await deleteSessionsOf(tx, threepid) }
    })
  }

  const boundTo = (person: Person): Promise<BindingRow[]> =>
    'userId' in person ? findBindingsOf(db, person.userId) : findBindings(db, [person.threepid])

  return {
    async show(name) {
      const person = readPerson(name)
      const userId = 'userId' in person ? person.userId : undefined
      const bound = await boundTo(person)
      const addresses = 'userId' in person ? bound : [person.threepid]
      const sent = userId === undefined ? [] : await listPendingInvitesBy(db, userId)
      const received = await Promise.all(addresses.map((threepid) => listPendingInvitesTo(db, threepid)))
      const invitations = new Map([...received.flat(), ...sent].map((row) => [row.invite_nid, viewOf(row)]))
      const kept: KeptOfPerson = {
        account: userId === undefined ? null : await accountOf(userId),
        bindings: bound.map(boundView),
        sessions: (await Promise.all(addresses.map(sessionsOf))).flat(),
        invitations: [...invitations.values()],
      }
      const { account, ...lists } = kept
      if (account === null && Object.values(lists).every((list) => list.length === 0)) throw nothing(name)
      return kept
    },
    async erase(name) {
      const person = readPerson(name)
      const bound = await boundTo(person)
      const gone: BindingRow[] = []
      for (const binding of bound) if (await bindings.erase(binding)) gone.push(binding)
      const addresses = 'userId' in person ? bound : [person.threepid]
      let [sessions, invitations] = [0, 0]
      for (const threepid of addresses) {
        const erased = await eraseAddress(threepid)
        sessions += erased.sessions
        invitations += erased.invitations
      }
      let tokens: number | undefined
      if ('userId' in person) {
        const { userId } = person
        tokens = await accounts.erase(userId)
        terms.forget(userId)
        invitations += await db.tx(async (tx) => {
          await deleteLookupsOf(tx, userId)
          return deleteInvitesBy(tx, userId)
        })
      }
      const isNothing = tokens === undefined && gone.length + sessions + invitations === 0
      if (isNothing) throw nothing(name)
      return {
        ...{ account: tokens !== undefined, tokens: tokens ?? 0 },
        ...{ bindings: gone.map(boundView), sessions, invitations },
      }
    },
  }
}
