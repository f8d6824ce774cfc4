import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Account, type Api, openApi, register, sendText } from '../../support/api.ts'
import { type ChildServer, startChildServer } from '../../support/child-server.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { runProgramHere } from '../../support/run-hearth.ts'

const ALIAS = '#kitchen:localhost'

let database: TestDatabase
let server: ChildServer
let api: Api
let alice: Account
let room: string
let redacted: string

beforeAll(async () => {
  database = await createTestDatabase()
  server = await startChildServer({
    env: { HEARTH__DATABASE__URL: database.url, HEARTH__RATE_LIMITS__ENABLED: 'false' },
  })
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  const bob = await register(api, 'bob')
  const call = (who: Account, method: string, path: string, body: object) =>
    api.call(method, path, { token: who.token, body })
  room = (await call(alice, 'POST', '/createRoom', { room_alias_name: 'kitchen', preset: 'public_chat' })).room_id
  const inRoom = `/rooms/${encodeURIComponent(room)}`
  await call(bob, 'POST', `${inRoom}/join`, {})
  redacted = await sendText(api, bob.token, room, 'one', 'burnt')
  await call(alice, 'PUT', `${inRoom}/redact/${encodeURIComponent(redacted)}/two`, {})
  await call(alice, 'PUT', `${inRoom}/state/m.room.topic/`, { topic: 'Pancakes' })
  await call(alice, 'POST', `${inRoom}/ban`, { user_id: bob.userId })
})

afterAll(async () => {
  await api.close()
  await server.dispose()
  await database.drop()
})

const hearth = (...words: string[]) =>
  runProgramHere(['room', ...words], {
    directory: server.dataDir,
    env: { HEARTH__DATABASE__URL: database.url, HEARTH__SERVER_NAME: server.serverName },
  })

const eventOf = async (type: string): Promise<{ event_id: string; event_nid: number; json: string }> => {
  const [row] = await database.db.query<{ event_id: string; event_nid: number; json: string }>(
    'SELECT event_id, event_nid, json FROM event WHERE type = $1 ORDER BY event_nid DESC LIMIT 1',
    [type],
  )
  return row!
}

describe('hearth room inspect', () => {
  it('tells where a room stands', async () => {
    const { code, stdout } = await hearth('inspect', ALIAS)
    expect(stdout).toContain(`${room}, room version 11\n`)
    expect(stdout).toMatch(new RegExp(`aliases +${ALIAS}\n`))
    expect(stdout).toMatch(/members +(1 join, 1 ban|1 ban, 1 join)\n/)
    expect(stdout).toMatch(/events +\d+ accepted\n/)
    expect(stdout).toContain((await eventOf('m.room.member')).event_id)
    expect(stdout).toMatch(/missing +nothing\n/)
    expect(code).toBe(0)
  })

  it('tells it to programs', async () => {
    const report = JSON.parse((await hearth('inspect', room, '--json')).stdout)
    expect(report).toMatchObject({ room_id: room, room_version: '11', aliases: [ALIAS], members: { join: 1, ban: 1 } })
    expect(report.forward_extremities).toHaveLength(1)
  })

  it('tells of an event what it is made of, and the state before it', async () => {
    const topic = await eventOf('m.room.topic')
    const { stdout } = await hearth('inspect', room, '--event', topic.event_id, '--state')
    expect(stdout).toContain(`${topic.event_id}, m.room.topic ""`)
    expect(stdout).toMatch(/standing +accepted\n/)
    expect(stdout).toMatch(/prev events +\$\S+ +m.room.redaction +accepted\n/)
    expect(stdout).toMatch(/state before +\d+ entries, at 0:\d+\n/)
    expect(stdout).toMatch(/ {4}m.room.member "@bob:localhost" {2}\$/)
    expect(stdout).not.toContain('    m.room.topic')
    const message = JSON.parse((await hearth('inspect', room, '--event', redacted, '--json')).stdout)
    expect(message).toMatchObject({ standing: 'accepted', redacted_by: (await eventOf('m.room.redaction')).event_id })
  })

  it('tells why an event was rejected', async () => {
    const { event_id, event_nid } = await eventOf('m.room.topic')
    const standing = (value: string | null, reason: string | null) =>
      database.db.query('UPDATE event SET standing = $2, reason = $3 WHERE event_nid = $1', [event_nid, value, reason])
    await standing('rejected', 'rule 7: too little power')
    const { stdout } = await hearth('inspect', room, '--event', event_id)
    await standing(null, null)
    expect(stdout).toMatch(/standing +rejected\n +rule 7: too little power\n/)
  })

  it.each([
    [['inspect', '!nowhere:localhost'], 1, 'this server knows no room !nowhere:localhost'],
    [['inspect', '#nowhere:localhost'], 1, 'this server knows no room #nowhere:localhost'],
    [['inspect', ALIAS, '--event', '$nothing'], 1, 'there is no event $nothing in this room'],
    [['inspect', ALIAS, '--state'], 2, 'say --event too'],
    [['paint', ALIAS], 2, 'say "inspect ROOM", "verify ROOM" or "stats ROOM"'],
  ])('%j is answered in words', async (words, code, advice) => {
    expect(await hearth(...words)).toMatchObject({ code, stderr: expect.stringContaining(advice) })
  })
})

describe('hearth room verify', () => {
  it('finds nothing wrong in a room that is right', async () => {
    const { code, stdout } = await hearth('verify', ALIAS)
    expect(stdout).toContain('All of it is right.')
    const [{ count } = { count: 0 }] = await database.db.query<{ count: number }>('SELECT count(*) AS count FROM event')
    expect(stdout).toMatch(new RegExp(`events +${count}\n`))
    expect(stdout).toMatch(new RegExp(`hashes +${count - 1} checked, 1 redacted`))
    expect(stdout).toMatch(new RegExp(`signatures +${count} checked\n`))
    expect(stdout).toMatch(new RegExp(`states +${count} computed again, 0 by resolution\n`))
    expect(stdout).toMatch(/members +2/)
    expect(code).toBe(0)
  })

  const tampered: readonly [what: string, change: string, undo: string, finding: string][] = [
    [
      'the content of an event',
      "UPDATE event SET json = replace(json, 'Pancakes', 'Waffles') WHERE type = 'm.room.topic'",
      "UPDATE event SET json = replace(json, 'Waffles', 'Pancakes') WHERE type = 'm.room.topic'",
      'its content hash is not that of its content',
    ],
    [
      'the depth of an event',
      `UPDATE event SET json = replace(json, '"depth":1,', '"depth":9,') WHERE type = 'm.room.create'`,
      `UPDATE event SET json = replace(json, '"depth":9,', '"depth":1,') WHERE type = 'm.room.create'`,
      'its reference hash makes it $',
    ],
    [
      'a member',
      "UPDATE room_member SET membership = 'join' WHERE membership = 'ban'",
      "UPDATE room_member SET membership = 'ban' WHERE user_nid IN (SELECT user_nid FROM matrix_user WHERE user_id LIKE '@bob:%')",
      '@bob:localhost is listed as join, and by the current state is ban',
    ],
    [
      'where an event stands',
      "UPDATE event SET state_seq = state_seq - 1 WHERE type = 'm.room.redaction'",
      "UPDATE event SET state_seq = state_seq + 1 WHERE type = 'm.room.redaction'",
      'the state before it is not what it is to be under m.room.member "@bob:localhost"',
    ],
    [
      'a change of state',
      'UPDATE state_change SET event_nid = event_nid + 1000 WHERE seq = 3',
      'UPDATE state_change SET event_nid = event_nid - 1000 WHERE seq = 3',
      'the state log does not have the change that it makes',
    ],
    [
      'where the room stands',
      'UPDATE room SET state_seq = state_seq - 1',
      'UPDATE room SET state_seq = state_seq + 1',
      'the room: the current state is not what it is to be under m.room.member "@bob:localhost"',
    ],
    [
      'the standing of an event',
      "UPDATE event SET standing = 'rejected' WHERE type = 'm.room.redaction'",
      "UPDATE event SET standing = NULL WHERE type = 'm.room.redaction'",
      'it was rejected, and no rule is against it',
    ],
    [
      'a checkpoint',
      "INSERT INTO state_checkpoint SELECT room_nid, 0, 2, '\\x010907' FROM room",
      'DELETE FROM state_checkpoint',
      'the room: the checkpoint at 0:2 is not what it is to be under',
    ],
  ]

  it.each(tampered)('finds that %s was tampered with', async (_, change, undo, finding) => {
    await database.db.query(change)
    const { code, stdout } = await hearth('verify', room)
    await database.db.query(undo)
    expect(stdout).toContain(finding)
    expect(stdout).toMatch(/\d+ findings?\./)
    expect(code).toBe(1)
  })

  it('finds nothing any more once all is undone', async () => {
    expect((await hearth('verify', room)).stdout).toContain('All of it is right.')
  })
})
