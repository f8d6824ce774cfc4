import { execFileSync } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { UserId } from '../../src/core/ids.ts'
import { ownEventsFrom } from '../../src/store/oauth/own-events.ts'
import { type Browsing, hiddenOf, type OauthWorld, openOauthWorld } from './world.ts'

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

async function noFiles(): Promise<never> {
  throw new Error('there are no files')
}

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

    const browser = world.browser()
    const page = await browser.signIn(await browser.open('/_hearth/account/data'), 'alice')
    expect(page.heading).toBe('Your data as a file')
    const cookie = cookieOf(browser)
    const answer = await fetch(page.url, {
      method: 'POST',
      headers: { cookie },
      body: new URLSearchParams(hiddenOf(page)),
    })
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="alice.tar"')
    const archive = join(directory, 'alice.tar')
    await writeFile(archive, Buffer.from(await answer.arrayBuffer()))
    execFileSync('tar', ['-xf', archive, '-C', directory])

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
    const id = uri.split('/').at(-1) ?? ''
    expect(await readFile(join(directory, 'media', id.replace(/[^\w-]/g, '_')), 'utf8')).toBe('a poem\n'.repeat(200))
  })

  it('are made for one browser of a person at a time', async () => {
    await world.account('carla')
    const { ownData } = world.services.oauth
    const browser = world.browser()
    const page = await browser.signIn(await browser.open('/_hearth/account/data'), 'carla')
    const first = ownData.archive(await ownerOf('carla'), noFiles)
    await first.next()
    const refused = await browser.submit(page)
    expect([refused.status, refused.heading]).toEqual([429, 'Your data as a file'])
    await first.return(undefined)
    expect((await browser.submit(page)).status).toBe(200)
  })

  it('keep no place when the browser goes away before the first piece', async () => {
    await world.account('emil')
    const owner = await ownerOf('emil')
    const browser = world.browser()
    const page = await browser.signIn(await browser.open('/_hearth/account/data'), 'emil')
    await world.db.tx(async (tx) => {
      await tx.query('LOCK TABLE account_data IN ACCESS EXCLUSIVE MODE', [])
      const leaving = new AbortController()
      const asked = fetch(new URL(page.url.pathname, world.baseUrl), {
        method: 'POST',
        headers: { cookie: cookieOf(browser) },
        body: new URLSearchParams(hiddenOf(page)),
        signal: leaving.signal,
      })
      await vi.waitFor(
        async () => expect(await world.db.query('SELECT 1 AS one FROM pg_locks WHERE NOT granted', [])).toHaveLength(1),
        { timeout: 10_000, interval: 20 },
      )
      leaving.abort()
      await expect(asked).rejects.toThrow()
    })
    await vi.waitFor(
      async () => {
        const again = world.services.oauth.ownData.archive(owner, noFiles)
        await again.next()
        await again.return(undefined)
      },
      { timeout: 3_000, interval: 50 },
    )
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

  it('need a person who has just shown who they are', async () => {
    await world.account('dirk')
    const browser = world.browser()
    await browser.signIn(await browser.open('/_hearth/account/data'), 'dirk')
    world.advance(11 * 60_000)
    expect((await browser.open('/_hearth/account/data')).heading).toBe('Confirm that it is you')
  })
})
