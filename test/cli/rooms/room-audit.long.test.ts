import { afterAll, beforeAll, expect, it } from 'vitest'
import type { RoomId, ServerName } from '../../../src/core/ids.ts'
import { auditRoom } from '../../../src/domain/room-audit/room-audit.ts'
import { type AuditTally, emptyTally } from '../../../src/domain/room-audit/tally.ts'
import { findRoomNid } from '../../../src/store/rooms/rooms.ts'
import { createStateCollector } from '../../../src/workers/state-collector.ts'
import { openScene, play } from '../../federation/actors.ts'
import { reconcile } from '../../federation/convergence.ts'
import { ROUGH } from '../../federation/network.ts'
import { Run } from '../../federation/run.ts'
import { type SimulatedServer, startSimulatedServer } from '../../federation/server.ts'
import { within } from '../../federation/world.ts'

const SEEDS = Array.from({ length: 12 }, (_, index) => 90_001 + index)

let servers: SimulatedServer[]
beforeAll(async () => {
  servers = await Promise.all(['one.test', 'two.test', 'three.test'].map(startSimulatedServer))
})
afterAll(async () => {
  for (const server of servers) await server.close()
})

/** A room that several servers wrote to over a network that reorders, loses and parts. */
async function playedRoom(seed: number): Promise<RoomId> {
  const run = new Run(servers, seed)
  return within(run, async () => {
    const scene = await openScene(run)
    run.network.conditions = ROUGH
    await play(scene, run.dice.between(40, 80))
    await reconcile(scene)
    return scene.roomId
  })
}

const keyOf = (server: ServerName) => {
  const key = servers.find(({ name }) => name === server)?.signingKey
  return key ? [{ keyId: key.keyId, publicKey: key.publicKey, validUntilTs: Number.MAX_SAFE_INTEGER }] : []
}

async function audit(server: SimulatedServer, roomId: RoomId, findings: string[]): Promise<AuditTally> {
  const roomNid = await findRoomNid(server.db, roomId)
  if (roomNid === undefined) return emptyTally()
  return auditRoom({
    db: server.db,
    roomNid,
    knownKeys: keyOf,
    found: ({ eventId, what }) => findings.push(`${server.name} ${roomId} ${eventId}: ${what}`),
    progress: () => undefined,
  })
}

it('rooms that forked and merged on several servers are found to be right, also once unused branches are gone', async () => {
  const rooms: RoomId[] = []
  for (const seed of SEEDS) rooms.push(await playedRoom(seed))
  const findings: string[] = []
  const total = emptyTally()
  const auditAll = async () => {
    for (const room of rooms) {
      for (const server of servers) {
        const tally = await audit(server, room, findings)
        for (const key of Object.keys(total) as (keyof AuditTally)[]) total[key] += tally[key]
      }
    }
  }
  await auditAll()
  expect(findings).toEqual([])
  expect(total.signatures).toBeGreaterThanOrEqual(total.events)
  expect(total.uncheckedSignatures).toBe(0)
  expect(total.resolutions).toBeGreaterThan(50)
  expect(total.states).toBeGreaterThan(8 * total.uncheckedStates)
  for (const server of servers) await createStateCollector(server.db).round(() => false)
  await auditAll()
  expect(findings).toEqual([])
}, 180_000)
