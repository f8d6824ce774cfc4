import { temporaryPostgres } from './postgres.ts'

/** Reads of one 1 kB row by key over one connection: as many a second as a pipeline of 32 carries, beside one after another. */

const ROWS = 20_000
const IN_FLIGHT = 32
const SECONDS = 3

const CREATE = `
  CREATE TABLE event (event_nid int PRIMARY KEY, json text NOT NULL);
  INSERT INTO event SELECT n, repeat(md5(n::text), 32) FROM generate_series(1, ${ROWS}) AS n;
  ANALYZE event`

async function main(): Promise<void> {
  const postgres = await temporaryPostgres(CREATE, { pipeline: true } as object)
  const read = (nid: number) =>
    postgres.client.query({ name: 'read', text: 'SELECT json FROM event WHERE event_nid = $1', values: [nid] })

  async function rate(inFlight: number): Promise<number> {
    const begun = performance.now()
    const deadline = begun + SECONDS * 1_000
    let reads = 0
    const reader = async () => {
      while (performance.now() < deadline) {
        const { rows } = await read(1 + ((reads * 7_919) % ROWS))
        if (rows.length !== 1) throw new Error('a row is missing')
        reads += 1
      }
    }
    await Promise.all(Array.from({ length: inFlight }, reader))
    return (reads * 1_000) / (performance.now() - begun)
  }

  await rate(IN_FLIGHT)
  const result = { pipelinedPerSecond: await rate(IN_FLIGHT), serialPerSecond: await rate(1) }
  await postgres.remove()
  process.send?.(result, () => process.exit(0))
}

await main()
