import { type Api, openApi } from './api.ts'
import type { Authority } from './certificate.ts'
import { type ChildServer, startChildServer } from './child-server.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { json, proxyTo, startTlsServer, type TlsServer } from './tls-server.ts'

/** A server as an operator runs it: a process of its own, behind a proxy that does TLS. */
export interface House {
  readonly name: string
  readonly front: TlsServer
  readonly database: TestDatabase
  readonly child: ChildServer
  readonly api: Api
  close(): Promise<void>
}

/** @param env more of its configuration, by environment name */
export async function openHouse(authority: Authority, env: Readonly<Record<string, string>> = {}): Promise<House> {
  const database = await createTestDatabase()
  const front = await startTlsServer(authority.issue(['localhost']), json({}, 503))
  const name = `localhost:${front.port}`
  const child = await startChildServer({
    serverName: name,
    env: {
      HEARTH__DATABASE__URL: database.url,
      HEARTH__OUTBOUND__CA_FILE: authority.file,
      HEARTH__OUTBOUND__ALLOW_RANGES: '127.0.0.1',
      HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4',
      HEARTH__REGISTRATION__ENABLED: 'true',
      HEARTH__RATE_LIMITS__ENABLED: 'false',
      ...env,
    },
  })
  front.handler = proxyTo(child.baseUrl)
  const api = openApi(child.baseUrl)
  async function close(): Promise<void> {
    await api.close()
    await child.dispose()
    await front.close()
    await database.drop()
  }
  return { name, front, database, child, api, close }
}
