import { verifySignature } from '../../core/signing/key.ts'
import { findPusher, removePusherByNumber } from '../../store/accounts/pushers.ts'
import type { Database } from '../../store/db/db.ts'
import type { OwnSigningKey } from '../federation/own-signing-key.ts'

/** The links in mails about unread messages that end these mails. Nothing is stored for a link: it is signed. */
export interface Unsubscribing {
  /** The token of a pusher's link. */
  tokenFor(pusherNid: number): string
  /** The address whose mails a link ends; undefined if they have ended, or if the link is not one of this server. */
  addressOf(token: string): Promise<string | undefined>
  /** Removes the pusher. Does nothing for a link that is good for nothing. */
  unsubscribe(token: string): Promise<void>
}

const TOKEN = /^([0-9]{1,15})\.([A-Za-z0-9_-]{1,100})$/

export function createUnsubscribing({
  db,
  signingKey,
  removed,
}: {
  readonly db: Database
  readonly signingKey: Pick<OwnSigningKey, 'sign' | 'publicKey' | 'former'>
  /** A pusher of this user is gone. */
  removed(userNid: number): void
}): Unsubscribing {
  /** No other text that this server signs begins so. */
  const signed = (pusherNid: number): string => `hearth: end the mails of pusher ${pusherNid}`

  /** The pusher of a link that this server made, with the key of today or an earlier one. */
  function pusherOf(token: string): number | undefined {
    const [, digits, sent = ''] = TOKEN.exec(token) ?? []
    if (digits === undefined) return undefined
    const text = signed(Number(digits))
    const signature = sent.replaceAll('-', '+').replaceAll('_', '/')
    const keys = [signingKey.publicKey, ...signingKey.former.map(({ publicKey }) => publicKey)]
    return keys.some((key) => verifySignature(key, text, signature)) ? Number(digits) : undefined
  }

  async function found(token: string) {
    const pusherNid = pusherOf(token)
    const row = pusherNid === undefined ? undefined : await findPusher(db, pusherNid)
    return row?.kind === 'email' ? row : undefined
  }

  return {
    tokenFor: (pusherNid) =>
      `${pusherNid}.${signingKey.sign(signed(pusherNid)).replaceAll('+', '-').replaceAll('/', '_')}`,
    addressOf: async (token) => (await found(token))?.pushkey,
    async unsubscribe(token) {
      const row = await found(token)
      if (!row) return
      await db.tx((tx) => removePusherByNumber(tx, row.pusher_nid))
      removed(row.user_nid)
    },
  }
}
