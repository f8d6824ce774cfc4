import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { UserId } from '../../src/core/ids.ts'
import { ARCHIVE_EVERY_MS, ARCHIVE_KEPT_MS } from '../../src/domain/limits/oauth.ts'
import { createDiskReserve } from '../../src/domain/media/disk-reserve.ts'
import { createArchiveFiles } from '../../src/domain/oauth/archive/archive-files.ts'
import { createArchives } from '../../src/domain/oauth/archive/archives.ts'
import { ownEventsFrom } from '../../src/store/oauth/own-events.ts'
import { type Browsing, hiddenOf, type Page } from '../support/browsing.ts'
import { type OauthWorld, openOauthWorld } from './world.ts'

let world: OauthWorld
let directory: string

beforeAll(async () => {
  world = await openOauthWorld({}, 'whole')
  directory = await mkdtemp(join(tmpdir(), 'hearth-archive-'))
})
afterAll(async () => {
  await world.close()
  await rm(directory, { recursive: true })
})

const cookieOf = ({ jar }: Browsing) => [...jar].map(([key, { value }]) => `${key.split(' ')[0]}=${value}`).join('; ')

async function ownerOf(name: string) {
  const userId = `@${name}:localhost` as UserId
  const [row] = await world.db.query<{ user_nid: number }>('SELECT user_nid FROM matrix_user WHERE user_id = $1', [
    userId,
  ])
  return { userNid: row!.user_nid, userId }
}

const WAIT = { timeout: 10_000, interval: 20 }

/** The page, once the archive is made. */
async function readyPage(browser: Browsing): Promise<Page> {
  let page = await browser.open('/_hearth/account/data')
  await vi.waitFor(async () => {
    page = await browser.open('/_hearth/account/data')
    expect(page.text).toContain('Download the archive')
  }, WAIT)
  return page
}

const download = (browser: Browsing, page: Page) =>
  fetch(page.url, { method: 'POST', headers: { cookie: cookieOf(browser) }, body: new URLSearchParams(hiddenOf(page)) })

describe("a person's data", () => {
  it('come as an archive that tar unpacks: account, settings, own messages and own files', async () => {
    const { token } = await world.account('alice')
    const bob = await world.account('bob')
    const call = (method: string, path: string, body?: object) => world.api.call(method, path, { token, body })
    await call('PUT', '/profile/@alice:localhost/displayname', { displayname: 'Alice' })
    await call('PUT', '/user/@alice:localhost/account_data/org.example.note', { text: 'remember' })
    const { room_id: room } = await call('POST', '/createRoom', { preset: 'public_chat', name: 'Ours' })
    await call('PUT', `/rooms/${room}/send/m.room.message/1`, { msgtype: 'm.text', body: 'mine' })
    const path = `/join/${encodeURIComponent(room)}`
    await world.api.call('POST', path, { token: bob.token, body: {} })
    const message = { msgtype: 'm.text', body: 'a secret of bob' }
    await world.api.call('PUT', `/rooms/${room}/send/m.room.message/2`, { token: bob.token, body: message })
    const upload = await fetch(`${world.origin}/_matrix/media/v3/upload?filename=poem.txt`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'text/plain' },
      body: 'a poem\n'.repeat(200),
    })
    const { content_uri: uri } = (await upload.json()) as { content_uri: string }

    await call('PUT', '/pushrules/global/content/rabbit', { pattern: 'rabbit', actions: ['notify'] })
    await call('POST', '/user/@alice:localhost/filter', { room: { timeline: { limit: 7 } } })
    const [event] = (await call('GET', `/rooms/${room}/messages?dir=b&limit=1`)).chunk
    await call('POST', `/rooms/${room}/receipt/m.read/${encodeURIComponent(event.event_id)}`, {})
    await call('POST', `/rooms/${room}/report/${encodeURIComponent(event.event_id)}`, { reason: 'a test' })
    const { version } = await call('POST', '/room_keys/version', {
      algorithm: 'm.megolm_backup.v1.curve25519-aes-sha2',
      auth_data: { public_key: 'x', signatures: {} },
    })
    const key = { first_message_index: 1, forwarded_count: 0, is_verified: false, session_data: { ciphertext: 'c' } }
    await call('PUT', `/room_keys/keys?version=${version}`, { rooms: { [room]: { sessions: { one: key, two: key } } } })

    const browser = world.browser()
    const page = await browser.signIn(await browser.open('/_hearth/account/data'), 'alice')
    expect(page.heading).toBe('Your data as a file')
    expect(page.text).toContain('Make the archive')
    await browser.submit(page)
    const ready = await readyPage(browser)
    const answer = await download(browser, ready)
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="alice.tar"')
    const archive = join(directory, 'alice.tar')
    await writeFile(archive, Buffer.from(await answer.arrayBuffer()))
    execFileSync('tar', ['-xmf', archive, '-C', directory])

    const read = async (name: string) => JSON.parse(await readFile(join(directory, name), 'utf8'))
    const account = await read('account.json')
    expect(account).toMatchObject({ user_id: '@alice:localhost', profile: { displayname: 'Alice' } })
    expect(account.sessions).toHaveLength(1)
    expect(JSON.stringify(account)).not.toMatch(/hearth_|scrypt/)
    expect(await read('account-data.json')).toContainEqual({
      room_id: '',
      type: 'org.example.note',
      content: { text: 'remember' },
    })
    expect(await read('rooms.json')).toEqual([{ room_id: room, membership: 'join' }])
    const parts = await readdir(join(directory, 'events'))
    const events = (await Promise.all(parts.map((name) => read(join('events', name))))).flat()
    expect(events.map(({ content }) => content.body)).toContain('mine')
    expect(JSON.stringify(events)).not.toContain('a secret of bob')
    expect((await read('push-rules.json')).own.content).toMatchObject([{ id: 'rabbit' }])
    expect(JSON.stringify(await read('filters.json'))).toContain('"limit":7')
    expect(await read('receipts.json')).toMatchObject([{ room_id: room, kind: 'm.read', event_id: event.event_id }])
    expect(await read('reports.json')).toMatchObject([{ kind: 'event', reason: 'a test' }])
    expect(await read('key-backups.json')).toMatchObject([{ auth_data: { public_key: 'x' }, key_count: 2 }])
    expect((await read('backed-up-keys/0.json')).map(({ session_id }: { session_id: string }) => session_id)).toEqual([
      'one',
      'two',
    ])
    const id = uri.split('/').at(-1) ?? ''
    expect(await readFile(join(directory, 'media', id.replace(/[^\w-]/g, '_')), 'utf8')).toBe('a poem\n'.repeat(200))
  })

  it('are made once for a person, until they delete them, and once a day', async () => {
    await world.account('carla')
    const browser = world.browser()
    const page = await browser.signIn(await browser.open('/_hearth/account/data'), 'carla')
    await Promise.all([browser.submit(page), browser.submit(page), browser.submit(page)])
    await readyPage(browser)
    const files = async () => readdir(join(world.services.config.data_dir, 'archives'))
    const before = await files()
    const { userNid } = await ownerOf('carla')
    await world.services.archives.remove(userNid)
    expect((await files()).length).toBe(before.length - 1)
    const again = await browser.open('/_hearth/account/data')
    expect(again.text).toContain('Make the archive')
    const refused = await browser.submit(again)
    expect([refused.status, refused.heading]).toEqual([429, 'Your data as a file'])
    world.advance(ARCHIVE_EVERY_MS + 1)
    await world.services.archives.request(userNid)
    expect(await world.services.archives.state(userNid)).toBeDefined()
  })

  it('expire, and the file with them', async () => {
    await world.account('emil')
    const { userNid } = await ownerOf('emil')
    const { archives } = world.services
    await archives.request(userNid)
    await vi.waitFor(async () => expect((await archives.state(userNid))?.isComplete).toBe(true), WAIT)
    world.advance(ARCHIVE_KEPT_MS + 1)
    expect(await archives.state(userNid)).toBeUndefined()
    expect(await archives.open(userNid)).toBeUndefined()
    await archives.work(() => false)
    expect(await readdir(join(world.services.config.data_dir, 'archives'))).toEqual([])
  })

  it('go with the account', async () => {
    await world.account('gone')
    const owner = await ownerOf('gone')
    const { archives, deactivation } = world.services
    await archives.request(owner.userNid)
    await deactivation.deactivate(owner, { erase: false, idServer: undefined })
    expect(await archives.state(owner.userNid)).toBeUndefined()
  })

  it('are continued after a restart where they were, and whatever a crash left behind', async () => {
    const { token } = await world.account('fritz')
    const texts: string[] = []
    for (const name of ['one', 'two', 'three', 'four']) {
      const text = `${name}\n`.repeat(750_000)
      texts.push(text)
      await fetch(`${world.origin}/_matrix/media/v3/upload?filename=${name}.txt`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'text/plain' },
        body: text,
      })
    }
    const { userNid } = await ownerOf('fritz')
    const place = join(directory, 'restarted')
    const open = () => {
      const { media, clock } = world.services
      // By this clock it is due later for the worker of the server itself.
      const later = { now: () => clock.now() + 3_600_000 }
      return createArchives({
        db: world.db,
        clock: later,
        random: { bytes: randomBytes },
        log: pino({ level: 'silent' }),
        files: createArchiveFiles(place, createDiskReserve(0)),
        openMedia: ({ digest, bytes }) =>
          media.downloads.open({ digest, bytes, contentType: '', fileName: undefined, isRemote: false }),
      })
    }
    const first = open()
    await first.request(userNid)
    let asked = 0
    await first.work(() => ++asked > 2)
    const half = await first.state(userNid)
    expect(half).toMatchObject({ isComplete: false, part: 'media' })
    const [file = ''] = await readdir(place)
    await appendFile(join(place, file), 'what was written and not recorded')
    const second = open()
    await second.work(() => false)
    expect(await second.state(userNid)).toMatchObject({ isComplete: true })
    const unpacked = join(directory, 'unpacked')
    await mkdir(unpacked)
    execFileSync('tar', ['-xf', join(place, file), '-C', unpacked])
    const names = (await readdir(join(unpacked, 'media'))).filter((name) => !name.startsWith('list-'))
    const found = await Promise.all(names.map((name) => readFile(join(unpacked, 'media', name), 'utf8')))
    expect(found.sort()).toEqual(texts.sort())
  })

  it('are read from a room in parts of so many bytes', async () => {
    const { token } = await world.account('flora')
    const { room_id: room } = await world.api.call('POST', '/createRoom', { token, body: {} })
    for (let number = 1; number <= 4; number += 1) {
      const body = { msgtype: 'm.text', body: `${number}`.repeat(10_000) }
      await world.api.call('PUT', `/rooms/${room}/send/m.room.message/${number}`, { token, body })
    }
    const { userNid } = await ownerOf('flora')
    const [row] = await world.db.query<{ room_nid: number }>('SELECT room_nid FROM room WHERE room_id = $1', [room])
    const whole = { roomNid: row!.room_nid, userNid, after: Number.MIN_SAFE_INTEGER, atMost: 1_000 }
    const all = await ownEventsFrom(world.db, { ...whole, bytes: 1_000_000 })
    const read: string[] = []
    for (let { after } = whole; ; ) {
      const { last, events } = await ownEventsFrom(world.db, { ...whole, after, bytes: 15_000 })
      if (last === null) break
      expect(events.join('').length).toBeLessThan(15_000 + 11_000)
      read.push(...events)
      after = last
    }
    expect(all.events.length).toBeGreaterThan(8)
    expect(read).toEqual(all.events)
  })

  it('stop growing where the disk is almost full', async () => {
    await world.account('greta')
    const { userNid } = await ownerOf('greta')
    let isFull = false
    const reserve = {
      async require() {
        if (isFull) throw new Error('the disk is almost full')
      },
    }
    const { media, clock } = world.services
    const place = join(directory, 'full')
    const archives = createArchives({
      db: world.db,
      clock: { now: () => clock.now() + 3_600_000 },
      random: { bytes: randomBytes },
      log: pino({ level: 'silent' }),
      files: createArchiveFiles(place, reserve),
      openMedia: ({ digest, bytes }) =>
        media.downloads.open({ digest, bytes, contentType: '', fileName: undefined, isRemote: false }),
    })
    await archives.request(userNid)
    // The file is begun while there is room, and then there is none.
    let asked = 0
    await archives.work(() => {
      asked += 1
      if (asked === 2) isFull = true
      return asked > 5
    })
    expect(await archives.state(userNid)).toMatchObject({ isComplete: false, isLate: true })
  })

  it('are downloaded by a person once at a time', async () => {
    await world.account('hugo')
    const { userNid } = await ownerOf('hugo')
    const { archives } = world.services
    await archives.request(userNid)
    await vi.waitFor(async () => expect((await archives.state(userNid))?.isComplete).toBe(true), WAIT)
    const all = await Promise.allSettled(Array.from({ length: 12 }, () => archives.open(userNid)))
    const opened = all.flatMap((one) => (one.status === 'fulfilled' && one.value !== undefined ? [one.value] : []))
    for (const { stream, done } of opened) {
      stream.destroy()
      done()
    }
    expect(opened).toHaveLength(1)
    const again = await archives.open(userNid)
    again?.stream.destroy()
    again?.done()
    expect(again).toBeDefined()
  })

  it('need a person who has just shown who they are', async () => {
    await world.account('dirk')
    const browser = world.browser()
    await browser.signIn(await browser.open('/_hearth/account/data'), 'dirk')
    await browser.submit(await browser.open('/_hearth/account/data'))
    const ready = await readyPage(browser)
    world.advance(11 * 60_000)
    expect((await browser.open('/_hearth/account/data')).heading).toBe('Confirm that it is you')
    const refused = await browser.submit(ready)
    expect([refused.heading, refused.headers.get('content-type')]).toEqual([
      'Confirm that it is you',
      'text/html; charset=utf-8',
    ])
    // Nor does anybody else get it.
    await world.account('eve')
    const other = world.browser()
    const page = await other.signIn(await other.open('/_hearth/account/data'), 'eve')
    expect(page.text).toContain('Make the archive')
    expect((await other.open(page.url, { ...hiddenOf(page), action: 'download' })).text).toContain('Make the archive')
  })
})
