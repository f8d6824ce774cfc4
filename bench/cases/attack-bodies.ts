import { setTimeout as pause } from 'node:timers/promises'
import { createRoom, openApi } from '../../test/support/api.ts'
import { type Bystander, noticedNote, startBystander } from '../bystander.ts'
import { registerPeople } from '../community.ts'
import type { AttackReady, AttackResult, AttackTask } from '../drivers/attack-bodies.ts'
import { type Driver, startDriver } from '../drivers/start.ts'
import { type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { openTarget, outboundTo, type Target } from '../target.ts'

export const BENCHMARK = 'attack-bodies'
const LONG_BYTES = 16 * 1024 * 1024
const MISSING_BYTES = 10
const SETTLED_AFTER_MS = 60_000
const SAMPLED_EVERY_MS = 200

interface Attack {
  readonly name: string
  readonly task: Omit<AttackTask, 'host' | 'port'>
}

/** Bodies of nobody, of what says to be a server, that never end or come slowly; and connections that say nothing. */
export async function measureAttackBodies(options: BenchOptions): Promise<Measurement[]> {
  const attacker = await startDriver<object, AttackReady>('./attack-bodies.js', {})
  const target = await openTarget(options, { env: outboundTo(attacker.ready.caFile) })
  try {
    const bystander = await startBystander(target)
    const rows: Measurement[] = []
    for (const attack of await attacksOn(target, attacker.ready.serverName, 2_000 * options.seconds)) {
      rows.push(await measureAttack(target, attacker, bystander, attack))
    }
    await bystander.close()
    return rows
  } finally {
    attacker.end()
    await target.close()
  }
}

async function attacksOn(target: Target, stranger: string, ms: number): Promise<Attack[]> {
  const api = openApi(target.baseUrl)
  const [account] = await registerPeople(api, target, 1)
  const { token } = account!
  const room = encodeURIComponent(await createRoom(api, token))
  await api.close()
  const signature = Buffer.alloc(64, 1).toString('base64').replace(/=+$/, '')
  const signed = `Authorization: X-Matrix origin="${stranger}",destination="localhost",key="ed25519:stub",sig="${signature}"`
  const send = (length: number, more: string) =>
    `PUT /_matrix/federation/v1/send/attack HTTP/1.1\r\nHost: hs\r\nContent-Length: ${length}\r\n${more}\r\n`
  const long = { bodyBytes: LONG_BYTES - MISSING_BYTES, pieceBytes: 65_536, everyMs: 0, ms, reopens: true }
  const message = `PUT /_matrix/client/v3/rooms/${room}/send/m.room.message/slow HTTP/1.1\r\nHost: hs\r\n`
  const slow = `${message}Authorization: Bearer ${token}\r\nContent-Length: 1000\r\n\r\n`
  const patience = { ms: 120_000, reopens: false }
  return [
    {
      name: 'nobody attacks',
      task: { ...long, connections: 1, head: '', bodyBytes: 0 },
    },
    {
      name: '200 slow connections to PUT F/send',
      task: { ...long, connections: 200, head: send(LONG_BYTES, `${signed}\r\n`), everyMs: 500 },
    },
    {
      name: `60 connections, 16 MiB less ${MISSING_BYTES} bytes each`,
      task: { ...long, connections: 60, head: send(LONG_BYTES, `${signed}\r\n`) },
    },
    {
      name: '30 of them without Authorization',
      task: { ...long, connections: 30, head: send(LONG_BYTES, '') },
    },
    {
      name: '5,000 connections that send nothing',
      task: { ...patience, connections: 5_000, head: '', bodyBytes: 0, pieceBytes: 0, everyMs: 0 },
    },
    {
      name: '1,000 bodies with a token, a byte a second',
      task: { ...patience, connections: 1_000, head: slow, bodyBytes: 1_000, pieceBytes: 1, everyMs: 1_000 },
    },
  ]
}

async function measureAttack(
  target: Target,
  attacker: Driver<AttackReady>,
  bystander: Bystander,
  { name, task }: Attack,
): Promise<Measurement> {
  const { hostname, port } = new URL(target.baseUrl)
  const resident = () => target.usage().server?.residentMb ?? Number.NaN
  const linesBefore = warningsOf(target)
  const before = resident()
  let peak = before
  const sampling = setInterval(() => {
    peak = Math.max(peak, resident())
  }, SAMPLED_EVERY_MS)
  const noticed = await bystander.during(() =>
    attacker.ask<AttackTask, AttackResult>({ ...task, host: hostname, port: Number(port) }),
  )
  clearInterval(sampling)
  await pause(SETTLED_AFTER_MS)
  const { answers, allEndedMs } = noticed.result
  const memory = `resident ${before.toFixed(0)} MB before, ${peak.toFixed(0)} peak, ${resident().toFixed(0)} a minute after`
  const ended = allEndedMs === undefined ? '' : `; all ended after ${(allEndedMs / 1_000).toFixed(0)} s`
  const warned = `${warningsOf(target) - linesBefore} lines of log`
  return measurement({
    benchmark: BENCHMARK,
    variant: name,
    ...noticed.sends,
    serverPeakMb: peak,
    note: `${memory}; ${noticedNote(noticed)}; answers ${JSON.stringify(answers)}${ended}; ${warned}`,
  })
}

const warningsOf = (target: Target) => target.own?.output().split('\n').length ?? 0
