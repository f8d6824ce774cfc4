import { makeCommunity } from '../community.ts'
import { latenciesOf, type Measurement, measurement, now } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget } from '../target.ts'

export const BENCHMARK = 'relations'
const REPLIES = 10_000
const SENDERS = 32
const READS = 300

/** Reads of a thread of 10,000 replies, one after another. */
export async function measureRelations(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  try {
    const { api, people, roomIds } = await makeCommunity(target, { people: SENDERS, rooms: 1, isIn: () => true })
    const room = encodeURIComponent(roomIds[0]!)
    const { token } = people[0]!
    const send = async (by: string, id: string, content: object): Promise<string> => {
      const body = { msgtype: 'm.text', body: 'hello', ...content }
      return (await api.call('PUT', `/rooms/${room}/send/m.room.message/${id}`, { token: by, body })).event_id
    }
    const root = await send(token, 'root', {})
    const relation = { 'm.relates_to': { rel_type: 'm.thread', event_id: root } }
    await Promise.all(
      people.map(async (person, index) => {
        for (let count = index; count < REPLIES; count += SENDERS) await send(person.token, `reply-${count}`, relation)
      }),
    )
    const at = `/_matrix/client/v1/rooms/${room}/relations/${encodeURIComponent(root)}`
    const paths: readonly [variant: string, path: string][] = [
      ['relations, by type', `${at}/m.thread?limit=50`],
      ['relations, of any type', `${at}?limit=50`],
      ['relations, recursive', `${at}?limit=50&recurse=true`],
      ['threads', `/_matrix/client/v1/rooms/${room}/threads?limit=20`],
      ['the root with its bundle', `/rooms/${room}/event/${encodeURIComponent(root)}`],
    ]
    const measured: Measurement[] = []
    for (const [variant, path] of paths) {
      const values: number[] = []
      const { serverCpuMs, postgresCpuMs } = await costOf(target, async () => {
        for (let read = 0; read < READS; read++) {
          const begun = now()
          await api.call('GET', path, { token })
          values.push(now() - begun)
        }
        return READS
      })
      const sorted = values.toSorted((a, b) => a - b)
      const p95 = sorted[Math.floor(sorted.length * 0.95)]!
      const note = `p95 ${p95.toFixed(1)} ms`
      measured.push(
        measurement({
          ...{ benchmark: BENCHMARK, variant: `${variant}, 10,000 replies`, serverCpuMs, postgresCpuMs, note },
          ...latenciesOf(values),
        }),
      )
    }
    await api.close()
    return measured
  } finally {
    await target.close()
  }
}
