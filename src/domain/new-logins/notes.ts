import type { Config } from '../../config/schema.ts'
import { forgetSent, noteNewLogin } from '../../store/accounts/new-logins.ts'
import type { Tx } from '../../store/db/db.ts'
import type { Clock } from '../clock.ts'
import { LETTER_PAUSE_MS, MAX_NEW_LOGINS, NEW_ACCOUNT_MS } from '../limits/new-logins.ts'

/** Where a login comes from. */
export interface LoginOrigin {
  readonly ip: string
  /** As in Accept-Language. */
  readonly languages?: string | undefined
}

export interface LoginOnNewDevice {
  readonly userNid: number
  readonly deviceId: string
  readonly deviceName: string | undefined
  readonly from: LoginOrigin | undefined
}

/** Notes logins on new devices, of which the owners of the accounts are told. */
export interface NewLoginNotes {
  /** Notes it in the transaction of the login. It costs nothing where nobody is told. */
  note(tx: Tx, login: LoginOnNewDevice): Promise<void>
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
}: {
  readonly config: WayConfig
  readonly clock: Clock
}): NewLoginNotes {
  const { byMail, byNotice } = waysOf(config)
  let listener = (): void => {}
  return {
    async note(tx, { userNid, deviceId, deviceName, from }) {
      if (!byMail && !byNotice) return
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
      })
    },
    noted: () => listener(),
    onNoted(heard) {
      listener = heard
    },
  }
}

/** What was told is known for as long as it holds back the next letter. */
export const newLoginChores: readonly ((tx: Tx, now: number, atMost: number) => Promise<number>)[] = [
  (tx, now, atMost) => forgetSent(tx, now - LETTER_PAUSE_MS, atMost),
]
