import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createDirectoryStore } from '../../src/domain/media/directory-store.ts'
import type { MediaStore } from '../../src/domain/media/media-store.ts'
import { createS3Store } from '../../src/domain/media/s3-store.ts'
import { createSpool, type Spool } from '../../src/domain/media/spool.ts'
import { StoreFailure } from '../../src/domain/media/store-failure.ts'
import { createGuardedClient, type GuardedClient } from '../../src/outbound/http.ts'
import { type Account, type Api, openApi, register } from '../support/api.ts'
import { watchDisk } from '../support/crash-disk.ts'
import { fetchFile, filesIn, uploadFile } from '../support/media.ts'
import { outboundConfig } from '../support/outside.ts'
import { S3_KEYS, type S3Service, startS3Service } from '../support/s3-service.ts'
import { startServer, type TestServer } from '../support/server.ts'

let directory: string
let spool: Spool
let service: S3Service
let client: GuardedClient

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'hearth-media-'))
  spool = createSpool(join(directory, 'incoming'))
  service = await startS3Service()
  client = await createGuardedClient({ config: outboundConfig(), log: pino({ level: 'silent' }) })
})
afterAll(async () => {
  await client.close()
  await service.close()
  rmSync(directory, { recursive: true, force: true })
})

async function* piecesOf(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 10_000) yield bytes.subarray(at, at + 10_000)
}

async function read(store: MediaStore, digest: Buffer, range?: { first: number; last: number }) {
  const stream = await store.open(digest, range)
  if (stream === undefined) return undefined
  const chunks: Buffer[] = []
  for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const s3 = (changes = {}) =>
  createS3Store(
    { endpoint: service.endpoint, region: 'us-east-1', prefix: 'a/', ...S3_KEYS, ...changes },
    async () => client,
  )

describe.each<[string, () => MediaStore]>([
  ['a directory', () => createDirectoryStore(join(directory, 'files'))],
  ['a service that speaks S3', s3],
])('%s', (_name, open) => {
  test('gives back what it took, whole and in part, and loses it only when told to', async () => {
    const store = open()
    const bytes = randomBytes(100_000)
    const digest = createHash('sha256').update(bytes).digest()
    expect(await read(store, digest)).toBeUndefined()
    for (let times = 0; times < 2; times++) {
      const file = await spool.take(piecesOf(bytes), 100_000)
      expect([file.digest, file.bytes]).toEqual([digest, bytes.length])
      await store.put(file)
      await file.discard()
    }
    expect((await read(store, digest))?.equals(bytes)).toBe(true)
    expect(await read(store, digest, { first: 10, last: 19 })).toEqual(bytes.subarray(10, 20))
    await store.remove(digest)
    await store.remove(digest)
    expect(await read(store, digest)).toBeUndefined()
    expect(filesIn(join(directory, 'incoming'))).toEqual([])
  })

  test('takes an empty file too', async () => {
    const store = open()
    const file = await spool.take(piecesOf(Buffer.alloc(0)), 10)
    await store.put(file)
    await file.discard()
    expect(await read(store, file.digest)).toEqual(Buffer.alloc(0))
  })
})

test('a file in a folder that another upload, or another process, is just making lasts too', async () => {
  const root = join(directory, 'disk')
  const files = join(root, 'files')
  mkdirSync(files, { recursive: true })
  const disk = watchDisk(root)
  try {
    const bytes = randomBytes(1_000)
    const digest = createHash('sha256').update(bytes).digest()
    const file = await createSpool(join(root, 'incoming')).take(piecesOf(bytes), 1_000)
    const hex = digest.toString('hex')
    mkdirSync(join(files, hex.slice(0, 2), hex.slice(2, 4)), { recursive: true })
    await createDirectoryStore(files).put(file)
    const left = join(directory, 'left')
    disk.leave(left)
    expect(await read(createDirectoryStore(join(left, 'files')), digest)).toEqual(bytes)
  } finally {
    disk.close()
  }
})

test('a service that does not know us is a store that cannot be used', async () => {
  for (const store of [
    s3({ access_key_id: 'nobody' }),
    s3({ bucket: 'not-there' }),
    s3({ endpoint: 'http://127.0.0.1:1' }),
  ]) {
    const file = await spool.take(piecesOf(randomBytes(100)), 100)
    await expect(store.put(file)).rejects.toBeInstanceOf(StoreFailure)
    await file.discard()
  }
})

describe('a server with files elsewhere', () => {
  let server: TestServer
  let api: Api
  let alice: Account

  beforeAll(async () => {
    const media = { store: 's3', s3: { endpoint: service.endpoint, ...S3_KEYS } } as const
    server = await startServer({ media }, { log: pino({ level: 'silent' }) })
    api = openApi(server.baseUrl)
    alice = await register(api, 'alice')
  })
  afterAll(async () => {
    await api.close()
    await server.close()
  })

  const get = (name: string, what = 'download') =>
    fetchFile(`${server.baseUrl}/_matrix/client/v1/media/${what}/${name}`, { token: alice.token })
  const post = (body: Buffer) =>
    fetchFile(`${server.baseUrl}/_matrix/media/v3/upload`, { method: 'POST', token: alice.token, body })

  test('takes files, shows them and makes thumbnails of them, and keeps nothing itself', async () => {
    const image = await sharp({ create: { width: 200, height: 100, channels: 3, background: 'teal' } })
      .png()
      .toBuffer()
    const name = await uploadFile(server.baseUrl, alice.token, image)
    expect((await get(name)).bytes.equals(image)).toBe(true)
    expect(await sharp((await get(`${name}?width=32&height=32`, 'thumbnail')).bytes).metadata()).toMatchObject({
      width: 32,
    })
    expect(filesIn(join(server.config.data_dir, 'media'))).toEqual([])
  })

  test('says so while the service is down, and loses nothing (R30)', async () => {
    const name = await uploadFile(server.baseUrl, alice.token, 'before')
    await service.stop()
    const refused = await post(randomBytes(50_000))
    expect([refused.status, refused.body.errcode]).toEqual([503, 'M_UNKNOWN'])
    expect(refused.headers.get('retry-after')).toBe('60')
    expect((await get(name)).status).toBe(503)
    expect(filesIn(join(server.config.data_dir, 'media'))).toEqual([])
    await service.start()
    expect((await get(name)).bytes.toString()).toBe('before')
    expect((await post(randomBytes(50_000))).status).toBe(200)
  })
})

test('a disk that takes nothing is a store that cannot be used (R5)', async () => {
  const file = join(directory, 'no-directory')
  writeFileSync(file, '')
  const refused = createSpool(join(file, 'incoming')).take(piecesOf(randomBytes(10)), 10)
  await expect(refused).rejects.toBeInstanceOf(StoreFailure)
  const taken = await spool.take(piecesOf(randomBytes(10)), 10)
  await expect(createDirectoryStore(join(file, 'files')).put(taken)).rejects.toBeInstanceOf(StoreFailure)
  await taken.discard()
})
