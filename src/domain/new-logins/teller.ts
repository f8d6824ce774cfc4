import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import { preferredLanguages } from '../../core/languages.ts'
import {
  findPeopleToTell,
  forgetWaiting,
  listWaiting,
  markSent,
  type NewLogin,
  type PersonToTell,
  postponeTelling,
} from '../../store/accounts/new-logins.ts'
import { getPushersOf } from '../../store/accounts/pushers.ts'
import { listUserThreepids } from '../../store/accounts/user-threepids.ts'
import type { Database } from '../../store/db/db.ts'
import type { ServerNotices } from '../admin/server-notices.ts'
import { pauseAfter } from '../backoff.ts'
import type { Clock, Random } from '../clock.ts'
import type { Messenger } from '../identity/messenger.ts'
import {
  FIRST_LETTER_RETRY_MS,
  LETTER_GIVEN_UP_AFTER_MS,
  LETTER_PAUSE_MS,
  LONGEST_LETTER_RETRY_MS,
  MAX_LETTER_ADDRESSES,
  MAX_LETTERS_AT_ONCE,
} from '../limits/new-logins.ts'
import { letterValues } from './letter.ts'
import { type NewLoginNotes, waysOf } from './notes.ts'

/** Tells people of logins on new devices: by mail, or by a notice of the server. */
export interface NewLoginTeller {
  /** Tells some of those who are to be told now. Gives how many it was. */
  tellDue(): Promise<number>
  onWake(listener: () => void): void
}

const TEMPLATE = 'new-login.mail'
const RETRIES = { firstMs: FIRST_LETTER_RETRY_MS, longestMs: LONGEST_LETTER_RETRY_MS }
const BY_ITSELF = { name: 'server', requester: undefined }

export function createNewLoginTeller(parts: {
  readonly config: Pick<
    Config,
    'sessions' | 'identity' | 'server_notices' | 'public_base_url' | 'listen' | 'server_name'
  >
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly messenger: Pick<Messenger, 'mail' | 'words'>
  readonly notices: Pick<ServerNotices, 'send'>
  readonly notes: NewLoginNotes
}): NewLoginTeller {
  const { config, db, clock, random, log, messenger, notices } = parts
  const ways = waysOf(config)

  /** The owner's language: that of their newest client with notifications, or else that of the login. */
  async function languagesOf(userNid: number, logins: readonly NewLogin[]): Promise<string[]> {
    const own = (await getPushersOf(db, userNid)).at(-1)?.lang
    return preferredLanguages(own ?? logins[0]?.languages ?? undefined)
  }

  /** Those of the time of the logins: whoever logged in cannot keep the owner from hearing of it by removing an address. */
  async function addressesOf(userNid: number, logins: readonly NewLogin[]): Promise<string[]> {
    const noted = new Set(logins.flatMap(({ addresses }) => addresses ?? []))
    if (noted.size > 0) return [...noted].slice(0, MAX_LETTER_ADDRESSES)
    const known = await listUserThreepids(db, userNid)
    const mails = known.filter(({ medium }) => medium === 'email')
    return mails.map(({ address }) => address).slice(0, MAX_LETTER_ADDRESSES)
  }

  /** @throws if nobody could be told who has an address */
  async function tell(
    { user_nid: userNid, user_id: userId }: PersonToTell,
    logins: readonly NewLogin[],
  ): Promise<void> {
    const values = letterValues(config, userId, logins)
    const look = { brand: undefined, languages: await languagesOf(userNid, logins) }
    const addresses = ways.byMail ? await addressesOf(userNid, logins) : []
    const outcomes = await Promise.allSettled(
      addresses.map((address) => messenger.mail(TEMPLATE, address, values, look)),
    )
    const failure = outcomes.find((outcome) => outcome.status === 'rejected')
    // One that arrived is enough: nobody needs the same letter again.
    if (failure !== undefined && outcomes.every(({ status }) => status === 'rejected')) throw failure.reason
    if (addresses.length === 0 && ways.byNotice) await notify(userId, messenger.words(TEMPLATE, values, look), logins)
  }

  async function notify(userId: UserId, body: string, logins: readonly NewLogin[]): Promise<void> {
    const content = { msgtype: 'm.text', body }
    const sent = { content, offence: undefined }
    const { device_id, logged_in_at } = logins[0]!
    // The same letter is one event, also after a crash.
    const txnId = `${userId} ${device_id} ${logged_in_at}`
    await notices
      .send(BY_ITSELF, { userId, type: 'm.room.message', stateKey: undefined, sent }, { txnId, path: 'new logins' })
      .catch((error: unknown) => {
        // They have blocked notices, or cannot get any.
        if (!(error instanceof ProtocolError) || error.status >= 500) throw error
      })
  }

  async function work(person: PersonToTell): Promise<void> {
    const { user_nid: userNid } = person
    const listedAt = clock.now()
    const logins = await listWaiting(db, userNid)
    if (logins.length === 0) return
    if (!person.is_active || (!ways.byMail && !ways.byNotice)) {
      return db.tx((tx) => forgetWaiting(tx, userNid, Number.MAX_SAFE_INTEGER))
    }
    const ids = logins.map(({ device_id }) => device_id)
    try {
      await tell(person, logins)
      await db.tx((tx) => markSent(tx, userNid, ids, listedAt))
    } catch (err) {
      const now = clock.now()
      log.warn({ err, user: person.user_id }, 'somebody could not be told of a login on a new device')
      const pause = pauseAfter(1 + Math.max(...logins.map(({ failures }) => failures)), RETRIES, random)
      await db.tx(async (tx) => {
        await forgetWaiting(tx, userNid, now - LETTER_GIVEN_UP_AFTER_MS)
        await postponeTelling(tx, userNid, now + pause)
      })
    }
  }

  return {
    async tellDue() {
      const now = clock.now()
      const people = await findPeopleToTell(db, { now, sentSince: now - LETTER_PAUSE_MS }, MAX_LETTERS_AT_ONCE)
      await Promise.all(people.map(work))
      return people.length
    },
    onWake: parts.notes.onNoted,
  }
}
