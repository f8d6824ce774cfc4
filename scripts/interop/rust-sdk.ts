import { writeFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { openApi, PASSWORD } from '../../test/support/api.ts'
import { startChildServer } from '../../test/support/child-server.ts'
import { setStage } from '../../test/support/rust-sdk/stage.ts'
import { startRecordingProxy } from './recording-proxy.ts'
import { buildRustClients, startRustClients } from './rust-clients.ts'
import { fixtureOf } from './rust-fixture.ts'
import { type RustScene, rustRows } from './rust-rows.ts'

export interface RustOutcome {
  readonly name: string
  readonly problem: string | undefined
}

export interface RustRun {
  readonly version: string
  readonly outcomes: readonly RustOutcome[]
}

export interface RustOptions {
  /** How many compilers run at once. */
  readonly jobs: string
  /** Where the clients' requests are written, for the test that sends them again. */
  readonly record: string | undefined
  readonly minutes: number
}

const DEVICES = { anna: 'ANNAPHONE', ben: 'BENPHONE' }

/** Has two clients on matrix-rust-sdk do what people do. @throws Error when it cannot begin */
export async function runRustSdk({ jobs, record, minutes }: RustOptions): Promise<RustRun> {
  const { program, version } = buildRustClients(jobs)
  console.log(`matrix-rust-sdk ${version}: starting ...`)
  const child = await startChildServer({
    serverName: 'localhost',
    env: { HEARTH__RATE_LIMITS__ENABLED: 'false', HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '10' },
  })
  const proxy = await startRecordingProxy(child.baseUrl)
  const api = openApi(proxy.baseUrl)
  const clients = startRustClients(program)
  const outcomes: RustOutcome[] = []
  const crash = async () => {
    proxy.note('crash')
    await child.kill('SIGKILL')
    await child.start()
  }
  try {
    const builder = openApi(child.baseUrl)
    const stage = await setStage(builder)
    await builder.close()
    const scene: RustScene = {
      ...{ api, clients, proxy, stage, crash },
      enter: (who) => clients.ask(who, 'enter', { url: proxy.baseUrl, password: PASSWORD, device: DEVICES[who] }),
      async forgetConnections() {
        proxy.note('forget')
        const database = new pg.Client({ ...child.postgresSocket()!, user: 'hearth', database: 'hearth' })
        await database.connect()
        await database.query('TRUNCATE sliding_connection')
        await database.end()
        await crash()
      },
    }
    const end = Date.now() + minutes * 60_000
    for (const { name, run } of rustRows) {
      const timer = new AbortController()
      const late = pause(Math.max(0, end - Date.now()), undefined, { signal: timer.signal }).then(() => {
        throw new Error('there is no time left')
      })
      late.catch(() => {})
      const begun = performance.now()
      const problem = await Promise.race([run(scene), late]).then(
        () => undefined,
        (error: Error) => error.message,
      )
      timer.abort()
      outcomes.push({ name, problem })
      console.log(`${problem ? '✗' : '✓'} ${name} (${((performance.now() - begun) / 1_000).toFixed(1)} s)`)
      if (problem) console.log(`    ${problem}`)
    }
    if (record !== undefined) await writeFile(record, fixtureOf(proxy.moments, stage))
    return { version, outcomes }
  } finally {
    await clients.close()
    await proxy.close()
    await api.close()
    await child.dispose()
  }
}
