/** Where the rows of a table lie: on the shard of their room or of their user, whole on every node, or on the first node alone. */
export type Place = 'room' | 'user' | 'everywhere' | 'one node'

/** The column that says on which shard a row lies. */
export const SHARD_KEY = { room: 'room_nid', user: 'user_nid' } as const

const PLACES: Readonly<Record<Exclude<Place, 'one node'>, readonly string[]>> = {
  room: [
    'early_redaction',
    'event',
    'event_gap',
    'event_relation',
    'held_event',
    'held_receipt',
    'ignored_event',
    'receipt',
    'room',
    'room_filling',
    'search_text',
    'state_chain',
    'state_change',
    'state_checkpoint',
    'state_key',
    'sticky_event',
    'thread',
    'thread_event',
    'uncounted_event',
    'unread_thread',
  ],
  user: [
    'accepted_policy',
    'access_token',
    'account',
    'account_data',
    'backed_up_key',
    'client_txn',
    'counted_from',
    'cross_signing_approval',
    'cross_signing_key',
    'dehydrated_device',
    'device',
    'device_key',
    'device_list',
    'fallback_key',
    'highlight',
    'ignored_sender',
    'key_backup',
    'key_backup_owner',
    'key_signature',
    'one_time_key',
    'profile_change',
    'profile_field',
    'push_rules',
    'pusher',
    'refresh_token',
    'room_member',
    'sliding_connection',
    'sync_filter',
    'thread_subscription',
    'to_device',
    'to_device_txn',
    'unread_event',
  ],
  everywhere: ['matrix_user', 'server_name'],
}

/** Tables that are named nowhere are small or in use now and then: they stay on one node. */
export function placeOf(table: string): Place {
  for (const place of ['room', 'user', 'everywhere'] as const) if (PLACES[place].includes(table)) return place
  return 'one node'
}

/** All tables that are not to stay on one node. */
export const PLACED: readonly string[] = Object.values(PLACES).flat()
