import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import {
  type Account,
  type Api,
  createRoom,
  join as enter,
  type Json,
  openApi,
  register,
  syncPath,
} from '../../support/api.ts'
import { type ChildServer, startChildServer } from '../../support/child-server.ts'
import { fetchFile, filesIn, uploadFile } from '../../support/media.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { canMount, mountSmallDisk, type SmallDisk } from '../../support/small-disk.ts'
import { waitUntil } from '../../support/wait.ts'

const MB = 1024 * 1024
/** What a write may take until it is answered while the disk is full. */
const MOST_MS = 10_000
/** So much must be refused before the test believes that the disk is full. */
const REFUSED = 20
/** Content of 30 kB that does not compress. */
const bulk = () =>
  Array.from({ length: 1_500 }, () => Math.random().toString(36))
    .join('')
    .slice(0, 30_000)

let disk: SmallDisk | undefined
let child: ChildServer | undefined
let here: TestServer | undefined
let api: Api | undefined
afterEach(async () => {
  disk?.free()
  await api?.close()
  await child?.dispose()
  await here?.close()
  disk?.unmount()
  disk = child = here = api = undefined
})

const isMountable = canMount()
if (!isMountable) console.log('full-disk: skipped, because only root may mount a small disk')

/** Sent with a transaction id, so that it can be repeated. */
interface Sent {
  readonly txnId: string
  readonly eventId: string
}

async function put(room: string, token: string, txnId: string): Promise<{ status: number; body: Json; ms: number }> {
  const begun = performance.now()
  const path = `/rooms/${encodeURIComponent(room)}/send/m.room.message/${txnId}`
  const answer = await api!.request('PUT', path, { token, body: { msgtype: 'm.text', body: txnId, bulk: bulk() } })
  return { ...answer, ms: performance.now() - begun }
}

/** The bodies of all messages of a room, with their event ids. */
async function messagesOf(room: string, token: string): Promise<Sent[]> {
  const found: Sent[] = []
  let from = ''
  for (;;) {
    const path = `/rooms/${encodeURIComponent(room)}/messages?dir=b&limit=50${from && `&from=${from}`}`
    const { chunk, end } = await api!.call('GET', path, { token })
    for (const { type, event_id, content } of chunk) {
      if (type === 'm.room.message') found.push({ txnId: content.body, eventId: event_id })
    }
    if (end === undefined || chunk.length === 0) return found
    from = encodeURIComponent(end)
  }
}

/** An upload whose length is not announced. */
const stream = (bytes: number) =>
  new ReadableStream({
    start(controller) {
      for (let left = bytes; left > 0; left -= 64 * 1024) controller.enqueue(new Uint8Array(64 * 1024).fill(7))
      controller.close()
    },
  })

async function uploadUnannounced(baseUrl: string, token: string, bytes: number) {
  const init = { method: 'POST', token, body: stream(bytes), duplex: 'half' } as RequestInit & { token: string }
  return fetchFile(`${baseUrl}/_matrix/media/v3/upload`, init)
}

const byTxn = (sent: readonly Sent[]) => sent.map(({ txnId, eventId }) => `${txnId} ${eventId}`).sort()

describe.skipIf(!isMountable)('A7: a disk that is really full', () => {
  test('loses nothing that was acknowledged, refuses with a reason, and the server goes on once there is room', async () => {
    disk = mountSmallDisk(300 * MB)
    child = await startChildServer({
      folder: join(disk.path, 'server'),
      env: { HEARTH__RATE_LIMITS__ENABLED: 'false', HEARTH__MEDIA__RESERVED_DISK_BYTES: '1' },
    })
    api = openApi(child.baseUrl)
    const ann = await register(api, 'ann')
    const bob = await register(api, 'bob')
    const room = await createRoom(api, ann.token, { preset: 'public_chat' })
    await enter(api, bob.token, room)
    const picture = Buffer.alloc(200_000, 3)
    const mediaId = await uploadFile(child.baseUrl, ann.token, picture)
    const acknowledged: Sent[] = []
    for (let n = 0; n < 10; n++) {
      acknowledged.push({ txnId: `before-${n}`, eventId: (await put(room, ann.token, `before-${n}`)).body.event_id })
    }

    // An upload that meets the last byte.
    disk.fill(1 * MB)
    const cut = await uploadUnannounced(child.baseUrl, ann.token, 3 * MB)
    expect([503, 507]).toContain(cut.status)
    expect(cut.body).toMatchObject({ errcode: 'M_UNKNOWN', error: expect.stringMatching(/disk|store/) })
    expect(filesIn(join(child.dataDir, 'data/media/incoming'))).toEqual([])

    const refusals = await sendUntilRefused(room, [ann, bob], acknowledged)
    expect(refusals.length).toBeGreaterThanOrEqual(REFUSED)
    for (const { status, body, ms } of refusals) {
      expect([503, 507]).toContain(status)
      expect(body).toMatchObject({ errcode: 'M_UNKNOWN', error: expect.stringMatching(/disk|database/) })
      expect(ms).toBeLessThan(MOST_MS)
    }
    const full = await fetchFile(`${child.baseUrl}/_matrix/media/v3/upload`, {
      ...{ method: 'POST', token: ann.token, body: picture },
    })
    expect([full.status, full.body.errcode]).toEqual([507, 'M_UNKNOWN'])
    await readsGoOn(child, room, ann, acknowledged, { mediaId, picture })

    // It is killed amid that, and cannot come up as long as there is no room: it says why.
    await child.kill('SIGKILL')
    disk.fill()
    const failed = await child.start().then(
      () => 'it started',
      (error: Error) => error.message,
    )
    if (failed !== 'it started') expect(failed).toMatch(/No space left on device|disk/)

    disk.free()
    if (!child.isRunning()) await child.start()
    await child.waitReady()
    for (const person of [ann, bob]) {
      const txnId = `after-${person.userId}`
      const eventId = await waitUntil('a send to be taken again', async () => {
        const { status, body } = await put(room, person.token, txnId)
        return status === 200 ? (body.event_id as string) : undefined
      })
      acknowledged.push({ txnId, eventId })
    }
    const stored = await messagesOf(room, bob.token)
    expect(new Set(stored.map(({ txnId }) => txnId)).size).toBe(stored.length)
    expect(byTxn(stored)).toEqual(expect.arrayContaining(byTxn(acknowledged)))
    expect(
      (await fetchFile(`${child.baseUrl}/_matrix/client/v1/media/download/${mediaId}`, { token: bob.token })).bytes,
    ).toEqual(picture)
    await uploadFile(child.baseUrl, bob.token, picture)
    expect(child.output()).not.toContain('an error that nobody expected')
  }, 240_000)

  test('for files alone stops uploads, and nothing else', async () => {
    disk = mountSmallDisk(8 * MB)
    here = await startServer({ data_dir: join(disk.path, 'data'), media: { reserved_disk_bytes: 1 } })
    api = openApi(here.baseUrl)
    const ann = await register(api, 'ann')
    const room = await createRoom(api, ann.token, {})
    const picture = Buffer.alloc(100_000, 3)
    const mediaId = await uploadFile(here.baseUrl, ann.token, picture)

    disk.fill(1 * MB)
    const cut = await uploadUnannounced(here.baseUrl, ann.token, 3 * MB)
    expect([cut.status, cut.body.errcode]).toEqual([503, 'M_UNKNOWN'])
    expect(filesIn(join(disk.path, 'data/media/incoming'))).toEqual([])
    disk.fill()
    await expect(uploadFile(here.baseUrl, ann.token, picture)).rejects.toThrow(/507/)
    expect((await put(room, ann.token, 'meanwhile')).status).toBe(200)
    const download = await fetchFile(`${here.baseUrl}/_matrix/client/v1/media/download/${mediaId}`, {
      token: ann.token,
    })
    expect([download.status, download.bytes.equals(picture)]).toEqual([200, true])

    disk.free()
    await uploadFile(here.baseUrl, ann.token, picture)
    expect(filesIn(join(disk.path, 'data/media/incoming'))).toEqual([])
  })
})

/** Fills the disk, and sends until the database has refused often enough. What was acknowledged meanwhile is added. */
async function sendUntilRefused(room: string, people: readonly Account[], acknowledged: Sent[]) {
  const refusals: { status: number; body: Json; ms: number }[] = []
  await Promise.all(
    people.map(async ({ token, userId }) => {
      for (let n = 0; refusals.length < REFUSED && n < 5_000; n++) {
        disk!.fill()
        const txnId = `${userId}-${n}`
        const answer = await put(room, token, txnId)
        if (answer.status === 200) acknowledged.push({ txnId, eventId: answer.body.event_id })
        else refusals.push(answer)
      }
    }),
  )
  return refusals
}

/** Reading goes on while nothing can be written. */
async function readsGoOn(
  server: ChildServer,
  room: string,
  { token }: Account,
  acknowledged: readonly Sent[],
  file: { readonly mediaId: string; readonly picture: Buffer },
): Promise<void> {
  for (const path of ['/health/live', '/health/ready']) {
    expect([path, (await fetch(server.baseUrl + path)).status]).toEqual([path, 200])
  }
  expect(byTxn(await messagesOf(room, token))).toEqual(expect.arrayContaining(byTxn(acknowledged)))
  expect((await api!.request('GET', syncPath({}), { token })).status).toBe(200)
  const { bytes } = await fetchFile(`${server.baseUrl}/_matrix/client/v1/media/download/${file.mediaId}`, { token })
  expect(bytes.equals(file.picture)).toBe(true)
}
