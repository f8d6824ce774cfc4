import { randomBytes } from 'node:crypto'
import sharp from 'sharp'
import { Pool } from 'undici'
import { type Account, mapConcurrently, openApi } from '../../test/support/api.ts'
import { registerPeople } from '../community.ts'
import { latenciesOf, type Measurement, measurement, now } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'media'
const LARGE_BYTES = 10 * 1024 * 1024
const SMALL_BYTES = 100 * 1024
const PEOPLE = 8

interface Setting {
  readonly target: Target
  readonly pool: Pool
  readonly people: readonly Account[]
  readonly seconds: number
}

/** Files in and out, large and small, and thumbnails; each upload is of bytes that the server has not seen. */
export async function measureMedia(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  const api = openApi(target.baseUrl)
  const pool = new Pool(target.baseUrl, { connections: PEOPLE })
  try {
    const people = await registerPeople(api, target, PEOPLE)
    const setting = { target, pool, people, seconds: options.seconds }
    const large = await upload(setting, people[0]!, freshFile(LARGE_BYTES)())
    const small = await upload(setting, people[0]!, freshFile(SMALL_BYTES)())
    return [
      await measure(setting, '10 MB up, 1 at a time', 1, LARGE_BYTES, uploading(setting, freshFile(LARGE_BYTES))),
      await measure(setting, '10 MB up, 8 at a time', 8, LARGE_BYTES, uploading(setting, freshFile(LARGE_BYTES))),
      await measure(setting, '100 kB up, 8 at a time', 8, SMALL_BYTES, uploading(setting, freshFile(SMALL_BYTES))),
      await measure(setting, '10 MB down, 8 at a time', 8, LARGE_BYTES, (by) => download(setting, by, large)),
      await measure(setting, '100 kB down, 8 at a time', 8, SMALL_BYTES, (by) => download(setting, by, small)),
      ...(await measureThumbnails(setting)),
    ]
  } finally {
    await pool.destroy()
    await api.close()
    await target.close()
  }
}

async function measureThumbnails(setting: Setting): Promise<Measurement[]> {
  const photo = await sharp(randomBytes(4000 * 3000 * 3), { raw: { width: 4000, height: 3000, channels: 3 } })
    .jpeg()
    .toBuffer()
  let turn = 0
  const make = async (by: Account) => {
    // What follows the end of a JPEG changes its digest and nothing else.
    turn += 1
    const name = await upload(setting, by, Buffer.concat([photo, Buffer.from(String(turn))]))
    const begun = now()
    await get(setting, by, `/_matrix/client/v1/media/thumbnail/${name}?width=800&height=600`)
    return now() - begun
  }
  const name = await upload(setting, setting.people[0]!, photo)
  const path = `/_matrix/client/v1/media/thumbnail/${name}?width=800&height=600`
  return [
    await measure(setting, 'thumbnail of 12 Mpx made, 2 at a time', 2, photo.length, make),
    await measure(setting, 'thumbnail that is there, 8 at a time', 8, 0, (by) => timed(() => get(setting, by, path))),
  ]
}

/** @param work gives how long it took, in milliseconds */
async function measure(
  { target, people, seconds }: Setting,
  variant: string,
  width: number,
  bytes: number,
  work: (by: Account) => Promise<number>,
): Promise<Measurement> {
  const took: number[] = []
  const before = target.usage().server
  const begun = now()
  const cost = await costOf(target, async () => {
    await mapConcurrently(people.slice(0, width), width, async (by) => {
      while (now() - begun < seconds * 1000) took.push(await work(by))
    })
    return took.length
  })
  const perSecond = took.length / ((now() - begun) / 1000)
  const megabytes = bytes === 0 ? '' : `${((perSecond * bytes) / 1e6).toFixed(0)} MB/s; `
  const resident = target.usage().server?.residentMb
  const memory =
    before && resident ? `${before.residentMb.toFixed(0)} MB resident before, ${resident.toFixed(0)} after` : ''
  return measurement({
    benchmark: BENCHMARK,
    variant,
    perSecond,
    ...latenciesOf(took),
    ...cost,
    note: megabytes + memory,
  })
}

/** Files that differ in their first bytes, without the time that random bytes take. */
function freshFile(bytes: number): () => Buffer {
  const file = randomBytes(bytes)
  let count = 0
  return () => {
    count += 1
    const fresh = Buffer.from(file)
    fresh.writeUInt32BE(count, 0)
    return fresh
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = now()
  await work()
  return now() - begun
}

const uploading = (setting: Setting, fresh: () => Buffer) => (by: Account) => {
  const file = fresh()
  return timed(() => upload(setting, by, file))
}

async function upload({ pool }: Setting, { token }: Account, body: Buffer): Promise<string> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' }
  const answer = await pool.request({ method: 'POST', path: '/_matrix/media/v3/upload', headers, body })
  const { content_uri: uri } = (await answer.body.json()) as { content_uri: string }
  return uri.slice('mxc://'.length)
}

const download = (setting: Setting, by: Account, name: string) =>
  timed(() => get(setting, by, `/_matrix/client/v1/media/download/${name}`))

async function get({ pool }: Setting, { token }: Account, path: string): Promise<void> {
  const answer = await pool.request({ method: 'GET', path, headers: { authorization: `Bearer ${token}` } })
  for await (const _chunk of answer.body);
  if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode}`)
}
