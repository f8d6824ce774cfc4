import { randomBytes } from 'node:crypto'
import { utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createDirectoryStore } from '../../src/domain/media/directory-store.ts'
import { createSpool } from '../../src/domain/media/spool.ts'
import { createSweep } from '../../src/domain/media/sweep.ts'
import { type Account, type Api, createRoom, openApi, register } from '../support/api.ts'
import { fetchFile, filesIn, uploadFile } from '../support/media.ts'
import { startServer, type TestServer } from '../support/server.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

let server: TestServer
let api: Api
let admin: Account
let alice: Account
let bob: Account

beforeAll(async () => {
  server = await startServer({}, { log: pino({ level: 'silent' }) })
  api = openApi(server.baseUrl)
  ;[admin, alice, bob] = (await Promise.all(['admin', 'alice', 'bob'].map((name) => register(api, name)))) as [
    Account,
    Account,
    Account,
  ]
  await server.database.db.tx((tx) =>
    tx.query(
      'UPDATE account SET is_admin = true WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $1)',
      [admin.userId],
    ),
  )
})
afterAll(async () => {
  await api.close()
  await server.close()
})

const upload = (by: Account, bytes: Uint8Array | string = randomBytes(100), options = {}) =>
  uploadFile(server.baseUrl, by.token, bytes, options)
const desk = (method: string, path: string, token = admin.token) =>
  api.request(method, `/_synapse/admin/v1/${path}`, { token })
const status = async (name: string) =>
  (await fetchFile(`${server.baseUrl}/_matrix/client/v1/media/download/${name}`, { token: alice.token })).status
const idOf = (name: string) => name.split('/')[1]!
const contents = () => filesIn(join(server.config.data_dir, 'media/files')).length
const change = (text: string, values: unknown[] = []) => server.database.db.tx((tx) => tx.query(text, values))

/** The sweeper of a server whose clock is ahead. */
function sweepAfter(ms: number, media = {}) {
  const directory = join(server.config.data_dir, 'media')
  return createSweep({
    config: { ...server.config, media: { ...server.config.media, ...media } },
    db: server.database.db,
    clock: { now: () => Date.now() + ms },
    store: createDirectoryStore(join(directory, 'files')),
    spool: createSpool(join(directory, 'incoming')),
  }).round()
}

describe('an operator', () => {
  test('sees what a user has uploaded, in pages and in any order', async () => {
    const carol = await register(api, 'carol')
    const names = []
    for (const size of [10, 30, 20])
      names.push(await upload(carol, randomBytes(size), { type: 'image/png', name: `${size}.png` }))
    const { body } = await desk('GET', `users/${carol.userId}/media`)
    expect(body.total).toBe(3)
    expect(body.media.map(({ media_length }: { media_length: number }) => media_length)).toEqual([20, 30, 10])
    expect(body.media[0]).toMatchObject({
      ...{ media_id: idOf(names[2]!), media_type: 'image/png', upload_name: '20.png', quarantined_by: null },
      safe_from_quarantine: false,
    })
    const page = await desk('GET', `users/${carol.userId}/media?order_by=media_length&dir=b&limit=2`)
    expect([page.body.media[0].media_length, page.body.next_token]).toEqual([30, 2])
    const usage = await desk('GET', 'statistics/users/media?search_term=CAROL')
    expect(usage.body).toEqual({
      users: [{ user_id: carol.userId, displayname: null, media_count: 3, media_length: 60 }],
      total: 1,
    })
    expect((await desk('GET', `media/${names[0]}`)).body.media_info).toMatchObject({
      user_id: carol.userId,
      media_length: 10,
    })
  })

  test('sees the same sums, whether they were kept or are counted', async () => {
    const dan = await register(api, 'dan')
    const shared = randomBytes(70)
    const names = [await upload(dan, shared), await upload(dan, shared), await upload(dan, randomBytes(5))]
    const reserved = await api.call('POST', '/_matrix/media/v1/create', { token: dan.token })
    const sums = async () => {
      const both = await Promise.all(
        ['', '&from_ts=0'].map((since) => desk('GET', `statistics/users/media?search_term=dan:${since}`)),
      )
      expect(both[0]!.body).toEqual(both[1]!.body)
      return both[0]!.body.users.map((one: Record<string, number>) => [one.media_count, one.media_length])
    }
    expect(await sums()).toEqual([[3, 145]])
    const path = `/_matrix/media/v3/upload/${reserved.content_uri.slice('mxc://'.length)}`
    await fetchFile(server.baseUrl + path, { method: 'PUT', token: dan.token, body: randomBytes(11) })
    expect(await sums()).toEqual([[4, 156]])
    await desk('DELETE', `media/${names[0]}`)
    expect(await sums()).toEqual([[3, 86]])
    await desk('DELETE', `users/${dan.userId}/media`)
    expect(await sums()).toEqual([])
    // And for everybody, whatever the tests before this one did.
    const [kept, counted] = await Promise.all(
      ['', '&from_ts=0'].map((since) => desk('GET', `statistics/users/media?limit=100${since}`)),
    )
    expect(kept!.body).toEqual(counted!.body)
  })

  test('alone does so', async () => {
    const name = await upload(bob)
    for (const [method, path] of [
      ['GET', `users/${bob.userId}/media`],
      ['DELETE', `users/${bob.userId}/media`],
      ['DELETE', `media/${name}`],
      ['POST', `media/quarantine/${name}`],
      ['POST', 'purge_media_cache?before_ts=1'],
      ['POST', 'media/delete?before_ts=1'],
      ['GET', 'statistics/users/media'],
    ] as const)
      expect((await desk(method, path, bob.token)).status, path).toBe(403)
    expect(await status(name)).toBe(200)
  })

  test('hides what is bad, whoever uploads it again, and shows it again', async () => {
    const bad = randomBytes(500)
    const names = [await upload(alice, bad), await upload(bob, bad)]
    expect((await desk('POST', `media/quarantine/${names[0]}`)).body).toEqual({})
    names.push(await upload(alice, bad))
    expect(await Promise.all(names.map(status))).toEqual([404, 404, 404])
    await desk('POST', `media/unquarantine/${names[2]}`)
    const { body: log } = await desk('GET', 'media/quarantine_changes')
    const last = log.changes.at(-1)
    expect(last).toMatchObject({ quarantined: false })
    expect(log.changes.filter((one: { quarantined: boolean }) => one.quarantined).length).toBeGreaterThan(0)
    const { body: rest } = await desk('GET', `media/quarantine_changes?from=${log.next_batch}`)
    expect(rest).toEqual({ next_batch: log.next_batch, changes: [] })
    expect(await Promise.all(names.map(status))).toEqual([200, 200, 200])
  })

  test('protects until that is taken back', async () => {
    const eve = await register(api, 'eve')
    const kept = await upload(eve)
    await desk('POST', `media/protect/${idOf(kept)}`)
    expect((await desk('POST', `user/${eve.userId}/media/quarantine`)).body).toEqual({ num_quarantined: 0 })
    expect((await desk('POST', `media/unprotect/${idOf(kept)}`)).body).toEqual({})
    expect((await desk('POST', `user/${eve.userId}/media/quarantine`)).body).toEqual({ num_quarantined: 1 })
  })

  test('hides all of a user and of a room, but what is protected', async () => {
    const dora = await register(api, 'dora')
    const [kept, hidden, shared] = [await upload(dora), await upload(dora), await upload(alice)]
    await desk('POST', `media/protect/${idOf(kept)}`)
    expect((await desk('POST', `user/${dora.userId}/media/quarantine`)).body).toEqual({ num_quarantined: 1 })
    expect([await status(kept), await status(hidden)]).toEqual([200, 404])
    const room = await createRoom(api, alice.token)
    const body = {
      msgtype: 'm.image',
      body: 'x',
      url: `mxc://${shared}`,
      info: { thumbnail_url: 'mxc://far.example.org/away' },
    }
    await api.call('PUT', `/rooms/${encodeURIComponent(room)}/send/m.room.message/1`, { token: alice.token, body })
    const inRoom = await desk('GET', `room/${encodeURIComponent(room)}/media`)
    expect(inRoom.body).toEqual({ local: [`mxc://${shared}`], remote: ['mxc://far.example.org/away'] })
    expect((await desk('POST', `room/${encodeURIComponent(room)}/media/quarantine`)).body).toEqual({
      num_quarantined: 1,
    })
    expect(await status(shared)).toBe(404)
  })

  test('deletes media, of a user or by age and size, and keeps the pictures of users', async () => {
    const erin = await register(api, 'erin')
    const [one, small, picture] = [await upload(erin), await upload(erin), await upload(erin, randomBytes(5_000))]
    await api.call('PUT', `/profile/${erin.userId}/avatar_url`, {
      token: erin.token,
      body: { avatar_url: `mxc://${picture}` },
    })
    expect((await desk('DELETE', `media/${one}`)).body).toEqual({ deleted_media: [idOf(one)], total: 1 })
    const later = Date.now() + 1_000
    const first = await desk('POST', `media/delete?before_ts=${later}&size_gt=1000`)
    expect(first.body.deleted_media).not.toContain(idOf(picture))
    const second = await desk('POST', `media/delete?before_ts=${later}&size_gt=1000&keep_profiles=false`)
    expect(second.body.deleted_media).toEqual([idOf(picture)])
    expect((await desk('DELETE', `users/${erin.userId}/media`)).body).toEqual({
      deleted_media: [idOf(small)],
      total: 1,
    })
    expect((await desk('DELETE', `media/${small}`)).body.errcode).toBe('M_NOT_FOUND')
  })
})

describe('the sweeper', () => {
  test('removes bytes once nothing refers to them, and not before', async () => {
    await sweepAfter(2 * HOUR_MS)
    const before = contents()
    const bytes = randomBytes(300)
    const [one, two] = [await upload(alice, bytes), await upload(bob, bytes)]
    await desk('DELETE', `media/${one}`)
    await sweepAfter(2 * HOUR_MS)
    expect([await status(two), contents()]).toEqual([200, before + 1])
    await desk('DELETE', `media/${two}`)
    expect(contents()).toBe(before + 1)
    await sweepAfter(2 * HOUR_MS)
    expect(contents()).toBe(before)
    expect(await status(await upload(alice, bytes))).toBe(200)
  })

  test('loses nothing of what comes in while it works', async () => {
    const bytes = Array.from({ length: 6 }, () => randomBytes(200))
    for (let turn = 0; turn < 5; turn++) {
      await change('UPDATE media_content SET wanted_at = 0 WHERE is_loose')
      const work = bytes.flatMap((each) => [upload(alice, each), sweepAfter(0)])
      const names = (await Promise.all(work)).filter((each) => typeof each === 'string')
      expect(await Promise.all(names.map(status))).toEqual(bytes.map(() => 200))
      await Promise.all(names.map((name) => desk('DELETE', `media/${name}`)))
    }
  })

  test('removes what was left half-way, names that nobody used, and what was brought and never referred to', async () => {
    const half = join(server.config.data_dir, 'media/incoming/half')
    writeFileSync(half, 'x')
    const old = new Date(Date.now() - 2 * HOUR_MS)
    utimesSync(half, old, old)
    await api.call('POST', '/_matrix/media/v1/create', { token: alice.token })
    const digest = randomBytes(32)
    await change('INSERT INTO media_content VALUES ($1, 1, true, true, 0)', [digest])
    await sweepAfter(25 * HOUR_MS)
    expect(filesIn(join(server.config.data_dir, 'media/incoming'))).toEqual([])
    expect(await server.database.db.query('SELECT FROM media WHERE digest IS NULL')).toEqual([])
    expect(await server.database.db.query('SELECT FROM media_content WHERE digest = $1', [digest])).toEqual([])
  })

  test('forgets files of other servers that nobody looked at for 30 days, and no others', async () => {
    const bytes = randomBytes(50)
    const mine = await upload(alice, bytes)
    await change(
      `INSERT INTO media (server_name, media_id, digest, created_at, seen_at, is_open)
       SELECT 'far.example.org', id, digest, 0, seen, false FROM media, (VALUES ('old', 1), ('new', $2::bigint)) AS far (id, seen) WHERE media_id = $1`,
      [idOf(mine), Date.now() + 39 * DAY_MS],
    )
    await sweepAfter(40 * DAY_MS)
    const rows = await server.database.db.query<{ media_id: string }>(
      "SELECT media_id FROM media WHERE server_name = 'far.example.org'",
    )
    expect(rows).toEqual([{ media_id: 'new' }])
    expect(await status(mine)).toBe(200)
    expect((await desk('POST', `purge_media_cache?before_ts=${Date.now() + 40 * DAY_MS}`)).body).toEqual({ deleted: 1 })
  })

  test('forgets files of ended accounts only where that is configured', async () => {
    const fay = await register(api, 'fay')
    const [one, kept] = [await upload(fay), await upload(fay)]
    await desk('POST', `media/protect/${idOf(kept)}`)
    const hers = await upload(alice)
    await api.call('POST', `/_synapse/admin/v1/deactivate/${fay.userId}`, { token: admin.token, body: {} })
    await sweepAfter(10 * DAY_MS)
    await sweepAfter(3 * DAY_MS, { keep_ended_days: 7 })
    expect(await status(one)).toBe(200)
    await sweepAfter(10 * DAY_MS, { keep_ended_days: 7 })
    expect([await status(one), await status(kept), await status(hers)]).toEqual([404, 200, 200])
  })

  test('forgets files of our users only where that is configured, and never pictures', async () => {
    const [picture, room, other] = [await upload(alice), await upload(alice), await upload(alice)]
    await api.call('PUT', `/profile/${alice.userId}/avatar_url`, {
      token: alice.token,
      body: { avatar_url: `mxc://${picture}` },
    })
    await createRoom(api, alice.token, {
      initial_state: [{ type: 'm.room.avatar', content: { url: `mxc://${room}` } }],
    })
    await sweepAfter(400 * DAY_MS)
    expect(await status(other)).toBe(200)
    await sweepAfter(400 * DAY_MS, { keep_local_days: 365 })
    expect([await status(picture), await status(room), await status(other)]).toEqual([200, 200, 404])
  })
})

test('what the store has lost is not found, and said so', async () => {
  const bytes = randomBytes(70)
  const name = await upload(alice, bytes)
  const { rmSync } = await import('node:fs')
  rmSync(join(server.config.data_dir, 'media/files'), { recursive: true })
  expect(await status(name)).toBe(404)
  expect(await status(await upload(bob, bytes))).toBe(200)
  expect(await status(name)).toBe(200)
})
