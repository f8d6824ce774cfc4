import type { UserId } from '../../../core/ids.ts'
import { listAccountData } from '../../../store/accounts/account-data.ts'
import { listExternalIds } from '../../../store/accounts/external-ids.ts'
import { findProfile } from '../../../store/accounts/profiles.ts'
import { findPushRules } from '../../../store/accounts/push-rules.ts'
import { getPushersOf } from '../../../store/accounts/pushers.ts'
import { listUserThreepids } from '../../../store/accounts/user-threepids.ts'
import type { Reader } from '../../../store/db/db.ts'
import { accountCreatedAt, roomsOf } from '../../../store/oauth/own-events.ts'
import {
  ownDelayedEvents,
  ownFilters,
  ownKeyBackups,
  ownKeys,
  ownReceipts,
  ownReports,
  ownThreads,
} from '../../../store/oauth/own-settings.ts'
import { listSessions } from '../../../store/oauth/sessions.ts'

const parsed = (text: unknown): unknown => JSON.parse(text as string)

/** What the server keeps of an account beside messages, files and backed-up keys: names of files, each with what becomes its JSON. */
export async function* accountFiles(
  db: Reader,
  { userNid, userId }: { readonly userNid: number; readonly userId: UserId },
): AsyncGenerator<readonly [name: string, value: unknown]> {
  const pushers = await getPushersOf(db, userNid)
  const sessions = await listSessions(db, userNid)
  yield [
    'account.json',
    {
      user_id: userId,
      created_at: await accountCreatedAt(db, userNid),
      profile: await findProfile(db, userId),
      addresses: await listUserThreepids(db, userNid),
      sign_in_services: await listExternalIds(db, userNid),
      sessions: sessions.map(({ client, ...session }) => ({ ...session, client: client && parsed(client) })),
      pushers: pushers.map(({ app_id, kind, pushkey }) => ({ app_id, kind, pushkey })),
    },
  ]
  const data = await listAccountData(db, userNid)
  yield ['account-data.json', data.map(({ room_id, type, content }) => ({ room_id, type, content }))]
  const rooms = await roomsOf(db, userNid)
  yield ['rooms.json', rooms.map(({ room_id, membership }) => ({ room_id, membership }))]
  yield ['receipts.json', await ownReceipts(db, userNid)]
  const [changed] = await findPushRules(db, [userNid])
  yield ['push-rules.json', changed === undefined ? null : parsed(changed.rules)]
  yield ['filters.json', (await ownFilters(db, userNid)).map(parsed)]
  yield ['reports.json', await ownReports(db, userNid)]
  yield ['threads.json', await ownThreads(db, userNid)]
  const delayed = await ownDelayedEvents(db, userNid)
  yield ['delayed-events.json', delayed.map((event) => ({ ...event, content: parsed(event.content) }))]
  const keys = await ownKeys(db, userNid)
  yield ['keys.json', keys.map(({ name, json }) => ({ name, key: parsed(json) }))]
  const backups = await ownKeyBackups(db, userNid)
  yield ['key-backups.json', backups.map((backup) => ({ ...backup, auth_data: parsed(backup.auth_data) }))]
}
