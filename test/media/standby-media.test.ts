import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { registerBySecret, SECRET } from '../admin/office.ts'
import { type Account, type Api, createRoom, openApi, register } from '../support/api.ts'
import { fetchFile, filesIn, uploadFile } from '../support/media.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'

/** Files that a node which stands by sends itself, and those that it leaves to the node that serves. */

let server: TestServer
/** The node that serves. Everything that changes something is asked of it. */
let api: Api
let alice: Account
let boss: Account
let servingIds: string

interface Init {
  /** Nobody's if it is null. */
  readonly by?: Account | null
  readonly headers?: Readonly<Record<string, string>>
}

/** What differs between two answers that are the same. */
const CHANCES = new Set(['date', 'x-request-id', 'connection', 'keep-alive'])
const idsOf = (headers: Headers) => headers.get('x-request-id')?.split('-')[0] ?? ''

async function fetched(base: string, path: string, { by = alice, headers = {} }: Init = {}) {
  const answer = await fetchFile(base + path, { ...(by && { token: by.token }), headers })
  return {
    status: answer.status,
    /** Whether the node that stands by made the answer itself. */
    isOwn: idsOf(answer.headers) !== servingIds,
    bytes: answer.bytes,
    headers: Object.fromEntries([...answer.headers].filter(([name]) => !CHANCES.has(name))),
  }
}

/** Asks the node that stands by. */
const at = (path: string, init?: Init) => fetched(server.standbyUrl, path, init)
const there = (path: string, init?: Init) => fetched(server.baseUrl, path, init)
const pathOf = (name: string) => `/_matrix/client/v1/media/download/${name}`
const upload = (bytes: Uint8Array | string, type = 'text/plain') =>
  uploadFile(server.baseUrl, alice.token, bytes, { type, name: 'a name.txt' })
const idOf = (name: string) => name.split('/')[1]
const change = (text: string, values: unknown[]) => server.database.db.tx((tx) => tx.query(text, values))
const desk = (method: string, path: string) =>
  api.call(method, `/_synapse/admin/v1/media/${path}`, { token: boss.token, body: {} })

const OWN = { isOwn: true, status: 200 }

beforeAll(async () => {
  const log = pino({ level: 'silent' })
  server = await startServer({ registration: { shared_secret: SECRET } }, { hasStandby: true, log })
  api = openApi(server.baseUrl)
  servingIds = idsOf((await fetch(`${server.baseUrl}/_matrix/client/versions`)).headers)
  alice = await register(api, 'alice')
  boss = await registerBySecret(api, 'boss', true)
  // The first request of a device is passed on, so that it is recorded as seen.
  for (const by of [alice, boss]) expect((await at(pathOf('localhost/none'), { by })).isOwn).toBe(false)
})
afterAll(async () => {
  await api.close()
  await server.close()
})

describe('a node that stands by', () => {
  it('sends what the node that serves would send: a file, under another name too, and its thumbnail', async () => {
    const picture = sharp({ create: { width: 99, height: 50, channels: 3, background: 'red' } })
    const name = await upload(await picture.png().toBuffer(), 'image/png')
    const thumbnail = `thumbnail/${name}?width=32&height=32&method=crop`
    // That one is made where it is served.
    expect(await at(`/_matrix/client/v1/media/${thumbnail}`)).toMatchObject({ isOwn: false, status: 200 })
    for (const root of ['_matrix', '_proto']) {
      for (const part of ['client/v1/media', 'media/v3', 'media/r0', 'media/v1']) {
        for (const rest of [`download/${name}`, `download/${name}/other.png?timeout_ms=7`, thumbnail]) {
          const path = `/${root}/${part}/${rest}`
          const expected = await there(path)
          expect({ path, ...expected }).toMatchObject({ path, isOwn: false, status: 200 })
          expect({ path, ...(await at(path)) }).toEqual({ path, ...expected, isOwn: true })
        }
      }
    }
  })

  it('sends parts, and nothing to who has it, as the node that serves would', async () => {
    const path = pathOf(await upload('0123456789'))
    const { etag = '' } = (await at(path)).headers
    const asked = [
      [206, { range: 'bytes=3-5' }],
      [206, { range: 'bytes=-2', 'if-range': etag }],
      [200, { range: 'bytes=-2', 'if-range': '"another"' }],
      [416, { range: 'bytes=10-' }],
      [304, { 'if-none-match': etag }],
    ] as const
    for (const [status, headers] of asked) {
      const expected = await there(path, { headers })
      expect(expected).toMatchObject({ isOwn: false, status })
      expect(await at(path, { headers })).toEqual({ ...expected, isOwn: true })
    }
  })

  it('knows at once what is hidden, shown again and deleted', async () => {
    const name = await upload('soon hidden')
    const path = pathOf(name)
    expect(await at(path)).toMatchObject(OWN)
    await desk('POST', `quarantine/${name}`)
    expect(await at(path)).toMatchObject({ isOwn: false, status: 404 })
    const forced = `${path}?admin_unsafely_bypass_quarantine=true`
    expect(await at(forced)).toMatchObject({ isOwn: false, status: 404 })
    expect(await at(forced, { by: boss })).toMatchObject({ isOwn: false, status: 200 })
    await desk('POST', `unquarantine/${name}`)
    expect(await at(path)).toMatchObject(OWN)
    await desk('DELETE', name)
    expect(await at(path)).toMatchObject({ isOwn: false, status: 404 })
  })

  it('asks for a token where the node that serves does', async () => {
    const name = await upload('for members')
    const path = `/_matrix/media/r0/download/${name}`
    expect(await at(path, { by: null })).toMatchObject({ isOwn: false, status: 404 })
    expect(await at(pathOf(name), { by: null })).toMatchObject({ isOwn: false, status: 401 })
    await change('UPDATE media SET is_open = true WHERE media_id = $1', [idOf(name)])
    const expected = await there(path, { by: null })
    expect(expected.headers['cache-control']).toMatch(/^public/)
    expect(await at(path, { by: null })).toEqual({ ...expected, isOwn: true })
  })

  it('passes on what is unknown, awaited, or not where it reads', async () => {
    expect(await at(pathOf('localhost/unknown'))).toMatchObject({ isOwn: false, status: 404 })
    const { content_uri } = await api.call('POST', '/_matrix/media/v1/create', { token: alice.token })
    const awaited = pathOf(String(content_uri).slice('mxc://'.length))
    expect(await at(`${awaited}?timeout_ms=0`)).toMatchObject({ isOwn: false, status: 504 })
    const path = pathOf(await upload('soon lost'))
    expect(await at(path)).toMatchObject(OWN)
    for (const file of filesIn(join(server.config.data_dir, 'media/files'))) await rm(file)
    expect(await at(path)).toMatchObject({ isOwn: false, status: 404 })
  })

  it('passes on the first view of a day, which is recorded', async () => {
    const name = await upload('a view')
    expect(await at(pathOf(name))).toMatchObject(OWN)
    await change('UPDATE media SET seen_at = seen_at - 90000000 WHERE media_id = $1', [idOf(name)])
    expect(await at(pathOf(name))).toMatchObject({ isOwn: false, status: 200 })
    await waitUntil('the view that is recorded', async () => (await at(pathOf(name))).isOwn)
  })

  it('sends files of another server while no policy list can ban that one', async () => {
    const name = await upload('from elsewhere')
    await change(
      `INSERT INTO media (server_name, media_id, digest, content_type, created_at, seen_at, is_open)
       SELECT 'elsewhere.example', media_id, digest, content_type, created_at, seen_at, false FROM media WHERE media_id = $1`,
      [idOf(name)],
    )
    const path = pathOf(`elsewhere.example/${idOf(name)}`)
    expect(await at(path)).toMatchObject(OWN)
    const room = await createRoom(api, boss.token, {})
    const list = `/_hearth/admin/v1/policy_lists/${encodeURIComponent(room)}`
    await api.call('PUT', list, { token: boss.token, body: {} })
    expect(await at(path)).toMatchObject({ isOwn: false, status: 200 })
    expect(await at(pathOf(name))).toMatchObject(OWN)
    await api.call('DELETE', list, { token: boss.token })
    expect(await at(path)).toMatchObject(OWN)
  })
})
