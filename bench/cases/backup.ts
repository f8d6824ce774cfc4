import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { Pool } from 'undici'
import type { Manifest } from '../../src/core/backup/manifest.ts'
import { sendText } from '../../test/support/api.ts'
import { freePort } from '../../test/support/free-port.ts'
import { PROJECT_ROOT } from '../../test/support/project.ts'
import { type Community, makeCommunity, newPrefix } from '../community.ts'
import { latenciesOf, type Measurement, measurement, now } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { runDelayMsOf, usageOfProcess, writtenBytesOf } from '../processes.ts'
import { openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'backup'
const SENDS_PER_SECOND = 200
const PEOPLE = 20
const MEDIA_BYTES = 8 * 1024 * 1024
/** Of what is filled in, this much is media, and the rest rows. */
const SHARE_OF_MEDIA = 0.5
const ROWS_AT_ONCE = 20_000
const ROW_BYTES = 1_000
const GIGABYTE = 1e9
const GOAL_SECONDS = 600
const GOAL_BYTES = 10 * GIGABYTE
const GOAL_RATIO = 1.5
const WARM_UP_MS = 5_000
const ROUNDS = 2
const LOOK_EVERY_MS = 500

/**
 * Backups and a restore of so many gigabytes, and what people notice who send 200 messages a second meanwhile. The first backup copies all, and
 * the second one is stopped; between them, and before and after, nobody makes one.
 */
export async function measureBackup(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  const { own } = target
  if (own === undefined) throw new Error('backup measures a server of its own: leave out --url')
  const folder = await mkdtemp(join(own.dataDir, 'bench-'))
  try {
    const community = await makeCommunity(target, { people: PEOPLE, rooms: PEOPLE, isIn: (one, room) => one === room })
    await fill(target, community, options.gigabytes * GIGABYTE)
    console.log(`${options.gigabytes} GB are filled in`)
    const during = async (work: () => Promise<unknown>): Promise<Sent> => {
      const before = runDelayMsOf(own.pid())
      const sent = await sendingDuring(community, work)
      return { ...sent, delayMs: runDelayMsOf(own.pid()) - before }
    }
    await during(() => pause(WARM_UP_MS))
    const place = join(folder, 'backups')
    const env = { HEARTH__SERVER_NAME: own.serverName, HEARTH__DATA_DIR: join(own.dataDir, 'data') }
    const listen = { HEARTH__LISTEN__PORT: new URL(own.baseUrl).port }
    const without: Sent[] = []
    const beside: (Sent & { used: Used })[] = []
    const alone = async () => {
      without.push(await during(() => pause(options.seconds * 2_000)))
      tell('no backup', without.at(-1)!)
    }
    for (let round = 0; round < ROUNDS; round++) {
      await alone()
      const before = postgresSeconds(target)
      let used: Used = { cpuSeconds: 0, writtenBytes: 0 }
      const sent = await during(async () => {
        used = await hearth(['backup', place], { ...env, ...listen }, round > 0 ? options.seconds * 4_000 : undefined)
      })
      tell('a backup', sent)
      beside.push({ ...sent, used: { ...used, postgresSeconds: postgresSeconds(target) - before } })
    }
    await alone()
    await community.api.close()
    const bytes = bytesOf(await newestManifest(place))
    await own.kill('SIGTERM')
    const restored: Used[] = []
    const begun = now()
    if (options.withRestore)
      restored.push(
        await hearth(['restore', place], {
          ...env,
          HEARTH__DATA_DIR: join(folder, 'restored'),
          HEARTH__LISTEN__PORT: String(await freePort()),
        }),
      )
    return rowsOf({ bytes, without, beside, restored, restoreMs: now() - begun })
  } finally {
    await target.close()
  }
}

/** At once: a long run may be cut off. */
function tell(what: string, sent: Sent): void {
  const { ms, latencies, failed } = sent
  const { p50Ms, p99Ms } = latenciesOf(latencies)
  const rate = latencies.length / (ms / 1_000)
  console.log(
    `${what}: ${(ms / 1_000).toFixed(0)} s, ${rate.toFixed(0)} sends/s, p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, ${failed} failed; ${delayNote(sent)}`,
  )
}

const delayNote = ({ ms, delayMs = 0 }: Sent): string =>
  `the server's main thread waited ${((1_000 * delayMs) / ms).toFixed(1)} ms a second for a processor`

const postgresSeconds = (target: Target): number => target.usage().postgres?.cpuSeconds ?? 0

interface Sent {
  readonly ms: number
  readonly latencies: readonly number[]
  readonly failed: number
  /** What the main thread of the server waited for a processor. */
  readonly delayMs?: number
}

/** What a command took of the machine. */
interface Used {
  readonly cpuSeconds: number
  readonly writtenBytes: number
  readonly postgresSeconds?: number
}

function rowsOf(of: {
  bytes: number
  without: readonly Sent[]
  beside: readonly (Sent & { used: Used })[]
  restored: readonly Used[]
  restoreMs: number
}): Measurement[] {
  const { bytes, without, beside, restored, restoreMs } = of
  const sends = (variant: string, sent: Sent, note: string) =>
    measurement({
      benchmark: BENCHMARK,
      variant,
      perSecond: sent.latencies.length / (sent.ms / 1000),
      ...latenciesOf(sent.latencies),
      note: `${sent.failed} failed${note}; ${delayNote(sent)}`,
    })
  const p99 = (all: readonly Sent[]) => latenciesOf(all.flatMap(({ latencies }) => latencies)).p99Ms
  const ratio = p99(beside) / p99(without)
  const verdict = ratio <= GOAL_RATIO ? 'reached' : 'missed'
  const copy = (variant: string, ms: number, { cpuSeconds, writtenBytes }: Used) => {
    const rate = bytes / (ms / 1000)
    const wouldTake = GOAL_BYTES / rate
    const note = `${(bytes / 1e6).toFixed(0)} MB in ${(ms / 1000).toFixed(1)} s = ${(rate / 1e6).toFixed(1)} MB/s; 10 GB in ${wouldTake.toFixed(0)} s, goal ${GOAL_SECONDS} s: ${wouldTake <= GOAL_SECONDS ? 'reached' : 'missed'}; ${cpuSeconds.toFixed(1)} s of CPU, ${(writtenBytes / 1e6).toFixed(0)} MB written`
    return measurement({ benchmark: BENCHMARK, variant, note })
  }
  const rows: Measurement[] = []
  for (const [round, quiet] of without.entries()) {
    rows.push(sends(`${SENDS_PER_SECOND} sends/s, no backup ${round + 1}`, quiet, ''))
    const busy = beside[round]
    if (busy === undefined) continue
    const share = (seconds: number) => `${((100 * seconds * 1000) / busy.ms).toFixed(0)}%`
    rows.push(
      sends(
        `${SENDS_PER_SECOND} sends/s, backup ${round + 1}`,
        busy,
        `; ${(busy.ms / 1000).toFixed(0)} s; of a core: the backup ${share(busy.used.cpuSeconds)}, Postgres with the sends ${share(busy.used.postgresSeconds ?? 0)}`,
      ),
    )
  }
  const note = `p99 with backups ${p99(beside).toFixed(1)} ms, without ${p99(without).toFixed(1)} ms: ${ratio.toFixed(2)} times, goal ${GOAL_RATIO}: ${verdict}`
  rows.push(measurement({ benchmark: BENCHMARK, variant: 'all of these', note }))
  rows.push(copy('backup under this load', beside[0]!.ms, beside[0]!.used))
  for (const used of restored) rows.push(copy('restore on an idle machine', restoreMs, used))
  return rows
}

/** Sends at a fixed rate while the work runs. A latency counts from when a message was to be sent, so that a stalled server does not hide it. */
async function sendingDuring({ api, people, roomIds }: Community, work: () => Promise<unknown>): Promise<Sent> {
  const word = newPrefix()
  const latencies: number[] = []
  const running = new Set<Promise<void>>()
  const begun = now()
  let failed = 0
  let isOver = false
  const working = work().finally(() => {
    isOver = true
  })
  for (let count = 0; !isOver; count++) {
    const due = begun + (count * 1000) / SENDS_PER_SECOND
    const early = due - now()
    if (early > 1) await pause(early)
    const who = count % PEOPLE
    const sending = sendText(api, people[who]!.token, roomIds[who]!, `${word}-${count}`, `${word} ${'x'.repeat(60)}`)
      .then(() => void latencies.push(now() - due))
      .catch(() => void failed++)
      .finally(() => running.delete(sending))
    running.add(sending)
  }
  const ms = now() - begun
  await Promise.all(running)
  await working
  return { ms, latencies, failed }
}

/** Runs the built program to its end, or until it is stopped, and gives what it used up to its last look. */
async function hearth(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
  stopAfterMs?: number,
): Promise<Used> {
  const child: ChildProcess = spawn(process.execPath, [join(PROJECT_ROOT, 'dist/main.js'), ...words], {
    env: { PATH: process.env.PATH ?? '', ...env },
  })
  let output = ''
  let used: Used = { cpuSeconds: 0, writtenBytes: 0 }
  const keep = (chunk: Buffer) => {
    output = (output + chunk).slice(-4_000)
  }
  child.stdout?.on('data', keep)
  child.stderr?.on('data', keep)
  const looking = setInterval(() => {
    const cpuSeconds = usageOfProcess(child.pid)?.cpuSeconds
    if (cpuSeconds !== undefined) used = { cpuSeconds, writtenBytes: writtenBytesOf(child.pid!) }
  }, LOOK_EVERY_MS)
  const stopping = stopAfterMs === undefined ? undefined : setTimeout(() => child.kill('SIGTERM'), stopAfterMs)
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  clearInterval(looking)
  clearTimeout(stopping)
  // One that ends by itself in time ends well.
  if (code !== 0 && (stopAfterMs === undefined || !child.killed))
    throw new Error(`hearth ${words[0]} ended with ${code}:\n${output}`)
  return used
}

/** Media by uploads of fresh bytes; rows as events that no room shows, of the length of usual ones and with all their indexes. */
async function fill(target: Target, { people }: Community, bytes: number): Promise<void> {
  const pool = new Pool(target.baseUrl, { connections: 4 })
  const headers = { authorization: `Bearer ${people[0]!.token}`, 'content-type': 'application/octet-stream' }
  for (let done = 0; done < bytes * SHARE_OF_MEDIA; done += MEDIA_BYTES) {
    const path = '/_matrix/media/v3/upload'
    const { statusCode, body } = await pool.request({ method: 'POST', path, headers, body: randomBytes(MEDIA_BYTES) })
    if (statusCode !== 200) throw new Error(`an upload was answered ${statusCode}: ${await body.text()}`)
    await body.dump()
  }
  await pool.close()
  const client = new pg.Client(target.database())
  await client.connect()
  const rows = Math.ceil((bytes * (1 - SHARE_OF_MEDIA)) / ROW_BYTES)
  for (let first = 1; first <= rows; first += ROWS_AT_ONCE)
    await client.query(EVENTS, [first, Math.min(rows, first + ROWS_AT_ONCE - 1)])
  await client.query('VACUUM ANALYZE event')
  await client.query('CHECKPOINT')
  await client.end()
}

const EVENTS = `INSERT INTO event (event_nid, room_nid, sender_nid, origin_server_ts, notifiable, state_chain, state_seq, standing, event_id, type, json)
  SELECT -n, 0, 0, n, 0, 0, 0, 'outlier', '$' || encode(sha256(n::text::bytea), 'base64'), 'm.room.message',
    '{"content":{"body":"' || repeat(md5(n::text) || ' ', 10) || md5(random()::text) || '","msgtype":"m.text"},"room_id":"!bench","hashes":"'
      || encode(sha256((n + 1)::text::bytea), 'base64') || '","prev_events":["' || encode(sha256((n - 1)::text::bytea), 'base64') || '"],"text":"'
      || repeat(md5((n * 7)::text), 8) || '"}'
  FROM generate_series($1::bigint, $2::bigint) AS n`

async function newestManifest(place: string): Promise<Manifest> {
  const ids = (await readdir(join(place, 'backups'))).sort()
  // One that was stopped has none.
  const files = ids.map((id) => join(place, 'backups', id, 'manifest.json')).filter((file) => existsSync(file))
  return JSON.parse(await readFile(files.at(-1)!, 'utf8')) as Manifest
}

/** What a person would call the size: rows as text, and media. */
const bytesOf = ({ database, media }: Manifest): number => database.text_bytes + media.bytes
