import { writeFile } from 'node:fs/promises'
import pg from 'pg'
import { Agent, setGlobalDispatcher } from 'undici'
import { openApi, register } from '../../test/support/api.ts'
import { Browsing } from '../../test/support/browsing.ts'
import { selfSigned } from '../../test/support/certificate.ts'
import { startChildServer } from '../../test/support/child-server.ts'
import { startRecordingProxy } from './recording-proxy.ts'
import { startRustClients } from './rust-clients.ts'
import type { StoryOptions } from './rust-sdk.ts'
import { signInFixtureOf } from './rust-sign-in-fixture.ts'
import { type SignInScene, signInRows } from './rust-sign-in-rows.ts'

/** A person signs in her clients with her browser. @throws Error when it cannot begin */
export async function playSignIn({ program, record, play }: StoryOptions): Promise<void> {
  let behind = ''
  // The clients sign out by HTTPS alone.
  const certificate = selfSigned('localhost')
  const proxy = await startRecordingProxy(() => behind, certificate)
  setGlobalDispatcher(new Agent({ connect: { ca: certificate.cert } }))
  const child = await startChildServer({
    serverName: 'localhost',
    env: {
      HEARTH__PUBLIC_BASE_URL: proxy.baseUrl,
      HEARTH__RATE_LIMITS__ENABLED: 'false',
      HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '10',
    },
  })
  behind = child.baseUrl
  const clients = startRustClients(program)
  try {
    const api = openApi(child.baseUrl)
    await register(api, 'anna')
    await api.close()
    const scene: SignInScene = {
      ...{ clients, proxy, browser: new Browsing(proxy.baseUrl) },
      come: (who) => clients.ask(who, 'come', { url: proxy.baseUrl }),
      async expire() {
        proxy.note('expire')
        const database = new pg.Client({ ...child.postgresSocket()!, user: 'hearth', database: 'hearth' })
        await database.connect()
        await database.query('UPDATE access_token SET expires_at = 1 WHERE expires_at IS NOT NULL')
        await database.end()
        // It knows sessions by heart.
        await child.kill('SIGKILL')
        await child.start()
      },
    }
    await play(scene, signInRows)
    if (record !== undefined) await writeFile(record, signInFixtureOf(proxy))
  } finally {
    await clients.close()
    await proxy.close()
    await child.dispose()
  }
}
