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
  ownAliases,
  ownBindings,
  ownDelayedEvents,
  ownFilters,
  ownKeyBackups,
  ownKeys,
  ownLogins,
  ownPolicies,
  ownReceipts,
  ownReports,
  ownSignatures,
  ownThreads,
} from '../../../store/oauth/own-settings.ts'
import { listSessions } from '../../../store/oauth/sessions.ts'

export type Owner = { readonly userNid: number; readonly userId: UserId }

/** A file of an archive, with what it is read from. */
interface OwnFile {
  readonly name: string
  readonly tables: readonly string[]
  /** Gives what becomes its JSON. */
  read(db: Reader, owner: Owner): Promise<unknown>
}

const parsed = (text: unknown): unknown => JSON.parse(text as string)

/** What belongs to a person and is small enough for one file each: all that `hearth user export` and the account page give of it. */
export const OWN_FILES: readonly OwnFile[] = [
  {
    name: 'account.json',
    tables: [
      ...['account', 'profile_field', 'user_threepid', 'threepid_bind', 'user_external_id', 'accepted_policy'],
      ...['device', 'oauth_session', 'pusher'],
    ],
    read: async (db, { userNid, userId }) => ({
      user_id: userId,
      created_at: await accountCreatedAt(db, userNid),
      profile: await findProfile(db, userId),
      addresses: await listUserThreepids(db, userNid),
      found_by_addresses: await ownBindings(db, userNid),
      sign_in_services: await listExternalIds(db, userNid),
      accepted_policies: await ownPolicies(db, userNid),
      sessions: (await listSessions(db, userNid)).map(({ client, ...session }) => ({
        ...session,
        client: client && parsed(client),
      })),
      pushers: (await getPushersOf(db, userNid)).map(({ app_id, kind, pushkey }) => ({ app_id, kind, pushkey })),
    }),
  },
  { name: 'logins.json', tables: ['new_login'], read: (db, { userNid }) => ownLogins(db, userNid) },
  {
    name: 'account-data.json',
    tables: ['account_data'],
    async read(db, { userNid }) {
      const data = await listAccountData(db, userNid)
      return data.map(({ room_id, type, content }) => ({ room_id, type, content }))
    },
  },
  {
    name: 'rooms.json',
    tables: ['room_member'],
    async read(db, { userNid }) {
      const rooms = await roomsOf(db, userNid)
      return rooms.map(({ room_id, membership }) => ({ room_id, membership }))
    },
  },
  { name: 'aliases.json', tables: ['room_alias'], read: (db, { userNid }) => ownAliases(db, userNid) },
  { name: 'receipts.json', tables: ['receipt'], read: (db, { userNid }) => ownReceipts(db, userNid) },
  {
    name: 'push-rules.json',
    tables: ['push_rules'],
    async read(db, { userNid }) {
      const [changed] = await findPushRules(db, [userNid])
      return changed === undefined ? null : parsed(changed.rules)
    },
  },
  {
    name: 'filters.json',
    tables: ['sync_filter'],
    read: async (db, { userNid }) => (await ownFilters(db, userNid)).map(parsed),
  },
  { name: 'reports.json', tables: ['report'], read: (db, { userNid }) => ownReports(db, userNid) },
  { name: 'threads.json', tables: ['thread_subscription'], read: (db, { userNid }) => ownThreads(db, userNid) },
  {
    name: 'delayed-events.json',
    tables: ['delayed_event'],
    async read(db, { userNid }) {
      const delayed = await ownDelayedEvents(db, userNid)
      return delayed.map((event) => ({ ...event, content: parsed(event.content) }))
    },
  },
  {
    name: 'keys.json',
    tables: ['device_key', 'cross_signing_key'],
    async read(db, { userNid }) {
      const keys = await ownKeys(db, userNid)
      return keys.map(({ name, json }) => ({ name, key: parsed(json) }))
    },
  },
  { name: 'signatures.json', tables: ['key_signature'], read: (db, { userNid }) => ownSignatures(db, userNid) },
  {
    name: 'key-backups.json',
    tables: ['key_backup'],
    async read(db, { userNid }) {
      const backups = await ownKeyBackups(db, userNid)
      return backups.map((backup) => ({ ...backup, auth_data: parsed(backup.auth_data) }))
    },
  },
]

/** What belongs to a person and is given in many files, a part at a time (`archive-content.ts`). */
export const OWN_PARTS: Readonly<Record<'keys' | 'events' | 'media', readonly string[]>> = {
  keys: ['backed_up_key'],
  events: ['event'],
  media: ['media', 'media_content'],
}

/** Tables that name users and are in no archive, by the reason. A new table that names users goes here or into one of the lists above. */
export const NOT_GIVEN: Readonly<Record<string, readonly string[]>> = {
  'the numbers and names of all users, and where lists of devices are': [
    'matrix_user',
    'device_list',
    'profile_change',
  ],
  'secrets of sessions, which open the account': [
    ...['access_token', 'refresh_token', 'login_token', 'openid_token', 'web_session', 'oauth_state'],
    ...['identity_token', 'delegated_session', 'operator_token', 'cross_signing_approval'],
  ],
  'kept for a moment, while something is under way': [
    ...['sso_flow', 'uia_session', 'identity_session', 'identity_delivery', 'deactivation', 'newcomer', 'room_upgrade'],
    ...['held_receipt', 'restored_user', 'contact_proof', 'own_data_archive', 'sliding_connection', 'to_device_txn'],
  ],
  'keys and messages that end when a device takes them': [
    ...['one_time_key', 'fallback_key', 'to_device', 'dehydrated_device', 'key_backup_owner'],
  ],
  'made from what is given: counts, notes of who may be found, what is hidden': [
    ...[
      'highlight',
      'unread_event',
      'counted_from',
      'thread_event',
      'event_relation',
      'ignored_event',
      'ignored_sender',
    ],
    ...['directory_user', 'directory_word', 'media_usage'],
  ],
  'an act or a setting of the operators': [
    ...['admin_act', 'blocked_room', 'user_redaction', 'report_note', 'policy_list', 'list_ban', 'rate_limit_override'],
    ...['server_notice_room', 'quarantine_change'],
  ],
  'what others find by an address, of users of any server; the own part is in account.json': [
    ...[
      'identity_account',
      'identity_accepted_url',
      'identity_binding',
      'identity_lookup_hash',
      'identity_lookup_change',
    ],
    ...['identity_send_limit'],
  ],
  'the address of somebody else': ['identity_invite'],
  'where a node listens, and what waits for other servers': ['node', 'federation_edu'],
}
