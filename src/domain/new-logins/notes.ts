import type { Config } from '../../config/schema.ts'
import { forgetSent, noteNewLogin } from '../../store/accounts/new-logins.ts'
import type { Tx } from '../../store/db/db.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { Clock } from '../clock.ts'
import { LETTER_PAUSE_MS, MAX_LETTER_ADDRESSES, MAX_NEW_LOGINS, NEW_ACCOUNT_MS } from '../limits/new-logins.ts'
import { networkOf } from '../network.ts'

/** Where a login comes from. */
export interface LoginOrigin {
  readonly ip: string
  /** As in Accept-Language. */
  readonly languages?: string | undefined
}

export interface NotableLogin {
  readonly userNid: number
  readonly deviceId: string
  readonly isNewDevice: boolean
  /** Of a new device. */
  readonly deviceName: string | undefined
  readonly from: LoginOrigin | undefined
}

/**
 * Notes logins of which the owners of the accounts are told: on new devices, and on known ones from a new address. Everybody in a user's
 * rooms knows the names of their devices.
 */
export interface NewLoginNotes {
  /** Notes it, if it is news, in the transaction of the login. It costs nothing where nobody is told. */
  note(tx: Tx, login: NotableLogin): Promise<void>
  /** Call this after the commit. */
  noted(): void
  onNoted(listener: () => void): void
}

type WayConfig = Pick<Config, 'sessions' | 'identity' | 'server_notices'>

/** By which ways people are told. */
export function waysOf({ sessions, identity, server_notices }: WayConfig): {
  readonly byMail: boolean
  readonly byNotice: boolean
} {
  const { new_login_letters: wish } = sessions
  return {
    byMail: wish !== 'nobody' && identity.mail.smtp.host !== undefined,
    byNotice: wish === 'mail_or_notice' && server_notices.localpart !== undefined,
  }
}

export function createNewLoginNotes({
  config,
  clock,
  sessions,
}: {
  readonly config: WayConfig
  readonly clock: Clock
  readonly sessions: Pick<Sessions, 'hasBeenAt'>
}): NewLoginNotes {
  const { byMail, byNotice } = waysOf(config)
  let listener = (): void => {}
  return {
    async note(tx, { userNid, deviceId, isNewDevice, deviceName, from }) {
      if (!byMail && !byNotice) return
      if (!isNewDevice && (from === undefined || (await sessions.hasBeenAt(userNid, networkOf(from.ip), tx)))) return
      const now = clock.now()
      const login = {
        user_nid: userNid,
        device_id: deviceId,
        device_name: deviceName ?? null,
        ip: from?.ip ?? null,
        languages: from?.languages?.slice(0, 200) ?? null,
        logged_in_at: now,
      }
      await noteNewLogin(tx, login, {
        accountBefore: now - NEW_ACCOUNT_MS,
        mostPerUser: MAX_NEW_LOGINS,
        needsMail: !byNotice,
        mostAddresses: MAX_LETTER_ADDRESSES,
      })
    },
    noted() {
      if (byMail || byNotice) listener()
    },
    onNoted(heard) {
      listener = heard
    },
  }
}

/** What was told is known for as long as it holds back the next letter. */
export const newLoginChores: readonly ((tx: Tx, now: number, atMost: number) => Promise<number>)[] = [
  (tx, now, atMost) => forgetSent(tx, now - LETTER_PAUSE_MS, atMost),
]
