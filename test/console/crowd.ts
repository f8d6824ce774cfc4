import { Client, type ClientConfig } from 'pg'

export const MANY_USERS = 100_000
export const MANY_ROOMS = 20_000
/** Members of each room but the first, which all are in. */
const MEMBERS = 10
const NUMBERED_FROM = 1_000_000

/** Loads many accounts and rooms past the server, which would take an hour; a room has what lists show of it. */
export async function fillTown(connection: ClientConfig): Promise<void> {
  const client = new Client(connection)
  await client.connect()
  try {
    await fill((text) => client.query(text))
    await client.query('ANALYZE')
  } finally {
    await client.end()
  }
}

async function fill(run: (text: string) => Promise<unknown>): Promise<void> {
  const event = (nid: string, room: string, pos: number, key: number, type: string, content: string) =>
    `SELECT ${nid}, ${room}, ${pos}, ${NUMBERED_FROM}, 1700000000000, 0, 0, ${pos - 1}, ${key}, '$' || ${nid}, '${type}',
       '{"type":"${type}","state_key":"","sender":"@user1:localhost","content":' || ${content} || ',"prev_events":[],"depth":${pos}}'
     FROM generate_series(1, ${MANY_ROOMS}) i`
  await run(`INSERT INTO matrix_user (user_nid, user_id) OVERRIDING SYSTEM VALUE
      SELECT ${NUMBERED_FROM} - 1 + i, '@user' || i || ':localhost' FROM generate_series(1, ${MANY_USERS}) i`)
  await run(`INSERT INTO account (user_nid, created_at)
      SELECT ${NUMBERED_FROM} - 1 + i, 1700000000000 + i FROM generate_series(1, ${MANY_USERS}) i`)
  await run(`INSERT INTO device (user_nid, device_id, created_at, last_seen_at)
      SELECT ${NUMBERED_FROM} - 1 + i, 'DEVICE', 1700000000000, 1700000000000 + (i * 7919) % 1000003 FROM generate_series(1, ${MANY_USERS}) i`)
  await run(`INSERT INTO profile_field (user_nid, name, value)
      SELECT ${NUMBERED_FROM} - 1 + i, 'displayname', '"Person ' || i || '"' FROM generate_series(1, ${MANY_USERS}) i`)
  await run(`INSERT INTO room (room_nid, room_id, room_version, head_version, extremities, depth, last_pos, last_nid, notifiable, state_chain, state_seq)
      SELECT ${NUMBERED_FROM} + i, '!room' || i || ':localhost', '11', 1, ARRAY[${NUMBERED_FROM} + i * 2 + 1], 2, 2 + i % 997, ${NUMBERED_FROM} + i * 2 + 1, 0, 0, 2
      FROM generate_series(1, ${MANY_ROOMS}) i`)
  const columns = `event_nid, room_nid, room_pos, sender_nid, origin_server_ts, notifiable, state_chain, state_seq, key_id, event_id, type, json`
  const room = `${NUMBERED_FROM} + i`
  const first = `${NUMBERED_FROM} + i * 2`
  await run(`INSERT INTO event (${columns}) ${event(first, room, 1, 1, 'm.room.create', `'{"room_version":"11"}'`)}`)
  await run(
    `INSERT INTO event (${columns}) ${event(`${first} + 1`, room, 2, 2, 'm.room.name', `'{"name":"Room number ' || i || '"}'`)}`,
  )
  await run(`INSERT INTO state_key (room_nid, key_id, type, state_key)
      SELECT ${room}, key, CASE key WHEN 1 THEN 'm.room.create' ELSE 'm.room.name' END, '' FROM generate_series(1, ${MANY_ROOMS}) i, generate_series(1, 2) key`)
  await run(`INSERT INTO state_change (room_nid, chain, seq, key_id, event_nid)
      SELECT ${room}, 0, key, key, ${first} + key - 1 FROM generate_series(1, ${MANY_ROOMS}) i, generate_series(1, 2) key`)
  await run(`INSERT INTO room_member (user_nid, room_nid, membership, event_nid)
      SELECT ${NUMBERED_FROM} + (i * ${MEMBERS} + m) % ${MANY_USERS}, ${room}, 'join', ${first}
      FROM generate_series(2, ${MANY_ROOMS}) i, generate_series(1, ${MEMBERS}) m`)
  await run(`INSERT INTO room_member (user_nid, room_nid, membership, event_nid)
      SELECT ${NUMBERED_FROM} - 1 + i, ${NUMBERED_FROM} + 1, 'join', ${NUMBERED_FROM} + 2 FROM generate_series(1, ${MANY_USERS}) i`)
  await run(`INSERT INTO identity_binding (medium, address, user_id, bound_at)
      SELECT 'email', 'user' || i || '@example.org', '@user' || i || ':localhost', 1700000000000 FROM generate_series(1, ${MANY_USERS}) i`)
  await run(`INSERT INTO admin_act (at, actor, act, target, outcome)
      SELECT 1700000000000 + i, '@boss:localhost', 'PUT C1/admin/lock/{userId}', '@user' || i || ':localhost', 'done' FROM generate_series(1, ${MANY_USERS}) i`)
  await run(`INSERT INTO report (kind, reporter_nid, received_at, reason, target_user)
      SELECT 'event', ${NUMBERED_FROM}, 1700000000000 + i, 'spam', '@user' || i || ':localhost' FROM generate_series(1, ${MANY_USERS}) i`)
  await run(`INSERT INTO media_content (digest, bytes, is_stored, is_loose, wanted_at)
      SELECT sha256(i::text::bytea), i, true, false, 0 FROM generate_series(1, ${MANY_USERS}) i`)
  await run(`INSERT INTO media (server_name, media_id, user_nid, digest, created_at, seen_at, is_open)
      SELECT 'localhost', 'media' || i, ${NUMBERED_FROM} - 1 + i, sha256(i::text::bytea), 0, 0, false FROM generate_series(1, ${MANY_USERS}) i`)
  // Servers that are known because their users are in rooms here.
  await run(`INSERT INTO matrix_user (user_nid, user_id) OVERRIDING SYSTEM VALUE
      SELECT ${NUMBERED_FROM * 2} + i, '@guest:server' || i || '.example.org' FROM generate_series(1, 500) i`)
  await run(`INSERT INTO room_member (user_nid, room_nid, membership, event_nid)
      SELECT ${NUMBERED_FROM * 2} + i, ${NUMBERED_FROM} + 2, 'join', ${NUMBERED_FROM} + 4 FROM generate_series(1, 500) i`)
}
