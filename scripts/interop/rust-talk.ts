import { writeFile } from 'node:fs/promises'
import pg from 'pg'
import { openApi, PASSWORD } from '../../test/support/api.ts'
import { startChildServer } from '../../test/support/child-server.ts'
import { setStage } from '../../test/support/rust-sdk/stage.ts'
import { startRecordingProxy } from './recording-proxy.ts'
import { startRustClients } from './rust-clients.ts'
import { fixtureOf } from './rust-fixture.ts'
import { type RustScene, rustRows } from './rust-rows.ts'
import type { StoryOptions } from './rust-sdk.ts'

const DEVICES = { anna: 'ANNAPHONE', ben: 'BENPHONE' }

/** Two people talk. @throws Error when it cannot begin */
export async function playTalk({ program, record, play }: StoryOptions): Promise<void> {
  const child = await startChildServer({
    serverName: 'localhost',
    env: { HEARTH__RATE_LIMITS__ENABLED: 'false', HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '10' },
  })
  const proxy = await startRecordingProxy(() => child.baseUrl)
  const api = openApi(proxy.baseUrl)
  const clients = startRustClients(program)
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
    await play(scene, rustRows)
    if (record !== undefined) await writeFile(record, fixtureOf(proxy.moments, stage))
  } finally {
    await clients.close()
    await proxy.close()
    await api.close()
    await child.dispose()
  }
}
