import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Logger } from 'pino'
import { buildApp } from '../app.ts'
import type { Config } from '../config/schema.ts'
import { createContext } from '../context.ts'
import { isUserId, userId } from '../core/ids.ts'
import { issueOperatorToken } from '../domain/admin/operators.ts'
import { createMetrics } from '../domain/metrics.ts'
import { openDatabase } from '../store/db/db.ts'
import { prepareDatabase } from '../store/db/prepare.ts'
import { isWriterPresent, WRITER } from '../store/db/writer-lock.ts'
import type { Host } from './command.ts'
import { borrowDatabase, MIGRATIONS, type RunningDatabase } from './database.ts'
import { localOrigin } from './local-origin.ts'
import { ensureDataDirectory } from './serve/data-directory.ts'
import { loadIdentityKeys } from './serve/identity-key-file.ts'
import { createLog } from './serve/log.ts'
import { openSigningKey } from './serve/signing-key-file.ts'

/** The admin endpoints, for the command line. */
export interface Administration {
  /** The body of a 2xx answer. @throws Error with the message of any other answer */
  // biome-ignore lint/suspicious/noExplicitAny: answers of our own endpoints
  call(method: Method, path: string, body?: object): Promise<any>
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

interface Answer {
  readonly status: number
  readonly text: string
}

type Ask = (method: Method, path: string, headers: Record<string, string>, body: string | undefined) => Promise<Answer>

/**
 * Runs work through the admin endpoints of the running server. If none runs, it uses the same endpoints in this process, without opening a
 * port. The command line authenticates with a token that it writes into the database and removes at the end.
 */
export async function withAdministration<T>(
  host: Host,
  config: Config,
  work: (administration: Administration) => Promise<T>,
): Promise<T> {
  await ensureDataDirectory(config.data_dir, host.uid)
  const log = createLog({ level: 'error', format: 'auto' }, host.isTerminal)
  const database = await borrowDatabase(config, host.uid, log)
  try {
    await prepareDatabase(database.connection, MIGRATIONS, config.server_name)
    const db = openDatabase({ connection: database.connection, poolSize: 1 })
    try {
      const { token, end } = await issueOperatorToken({ db, clock: Date, random: { bytes: randomBytes } })
      const isRunning = await isWriterPresent(db, WRITER)
      const side = isRunning ? await beside(config, token) : await alone(host, config, database, log)
      try {
        return await work(administration(side.ask, token))
      } finally {
        await side.close()
        await end()
      }
    } finally {
      await db.close()
    }
  } finally {
    await database.stop()
  }
}

interface Side {
  readonly ask: Ask
  close(): Promise<void>
}

/** Connects to the running server. First it checks that the listener there knows the token in our database. */
async function beside(config: Config, token: string): Promise<Side> {
  const { socket } = config.listen
  const origin = socket ?? localOrigin(config.listen)
  const ask: Ask = async (method, path, headers, body) => {
    if (socket !== undefined) return askOverSocket(socket, method, path, headers, body)
    const answer = await fetch(origin + path, { method, headers, ...(body === undefined ? {} : { body }) })
    return { status: answer.status, text: await answer.text() }
  }
  const path = '/_hearth/admin/v1/acts?limit=1'
  const first = await ask('GET', path, { authorization: `Bearer ${token}` }, undefined).catch(() => undefined)
  if (first?.status === 200) return { ask, close: async () => {} }
  throw new Error(
    `the server runs, but not at ${origin}; give the command the configuration that the server has, such as --set listen.port=8008`,
  )
}

function askOverSocket(socketPath: string, ...[method, path, headers, body]: Parameters<Ask>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, method, path, headers }, (answer) => {
      text(answer).then((read) => resolve({ status: answer.statusCode ?? 0, text: read }), reject)
    })
    asked.once('error', reject)
    asked.end(body)
  })
}

async function alone(host: Host, config: Config, { connection }: RunningDatabase, log: Logger): Promise<Side> {
  const context = await createContext({
    config: { ...config, roles: ['client'] },
    connection,
    signingKey: await openSigningKey(config.data_dir),
    identityKeys: await loadIdentityKeys(config.data_dir),
    version: host.version,
    metrics: createMetrics({ version: host.version, node: host.nodeVersion }),
    log,
  })
  const { app } = buildApp(context)
  return {
    async ask(method, url, headers, body) {
      const answer = await app.inject({ method, url, headers, ...(body === undefined ? {} : { payload: body }) })
      return { status: answer.statusCode, text: answer.body }
    },
    async close() {
      await app.close()
      await context.close()
    },
  }
}

function administration(ask: Ask, token: string): Administration {
  return {
    async call(method, path, body) {
      const headers = {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      }
      const { status, text } = await ask(method, path, headers, body && JSON.stringify(body))
      const answer = JSON.parse(text) as { readonly error?: string; readonly errcode?: string }
      if (status >= 200 && status < 300) return answer
      if (answer.errcode === 'M_UNRECOGNIZED')
        throw new Error('the server that runs does not do this: it is an identity service alone, or another release')
      throw new Error(answer.error ?? `the server answered ${status}`)
    },
  }
}

/** `alice`, `@alice` and `@alice:example.org` are the same user of this server. */
export function userNamed(name: string, config: Config): string {
  if (isUserId(name)) return name
  return userId(name.startsWith('@') ? name.slice(1) : name, config.server_name)
}
