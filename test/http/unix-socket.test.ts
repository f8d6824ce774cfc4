import { mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { addressReader, UNIX_PEER } from '../../src/http/client-address.ts'
import { startServer, type TestServer } from '../support/server.ts'

let directory: string
let path: string
let server: TestServer | undefined
let other: Server | undefined
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hearth-socket-'))
  path = join(directory, 'hearth.sock')
})
afterEach(async () => {
  await server?.close()
  server = undefined
  other?.close()
  other = undefined
  await rm(directory, { recursive: true, force: true })
})

function ask(target: string, headers: Record<string, string> = {}, body?: object) {
  return new Promise<{ status: number; body: string }>((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST'
    const asked = request({ socketPath: path, path: target, method, headers }, (answer) => {
      text(answer).then((read) => resolve({ status: answer.statusCode ?? 0, body: read }), reject)
    })
    asked.once('error', reject)
    asked.end(body && JSON.stringify(body))
  })
}

test('it serves the same, only those may connect whom its mode lets, and it is gone after the end', async () => {
  server = await startServer({ listen: { socket: path, socket_mode: '600' } })
  expect(await ask('/_matrix/client/versions')).toMatchObject({ status: 200 })
  expect(await ask('/health/ready')).toMatchObject({ status: 200 })
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  await server.close()
  server = undefined
  await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' })
})

test('registration is not open by itself to those who come through it', async () => {
  server = await startServer({ listen: { socket: path } })
  const body = { username: 'alice', password: 'a long password', auth: { type: 'm.login.dummy' } }
  expect((await ask('/_matrix/client/v3/register', {}, body)).status).toBe(403)
})

test('what limits a client counts by the address that the proxy names', async () => {
  server = await startServer({
    listen: { socket: path },
    rate_limits: { enabled: true, login: { per_second: 0.001, burst: 2 } },
  })
  const login = (address: string) =>
    ask(
      '/_matrix/client/v3/login',
      { 'x-forwarded-for': address },
      { type: 'm.login.password', password: 'no', identifier: { type: 'm.id.user', user: address } },
    )
  for (const status of [403, 403, 429]) expect((await login('192.0.2.1')).status).toBe(status)
  expect((await login('192.0.2.2')).status).toBe(403)
})

describe('what is there already', () => {
  test('a socket on which nobody listens is replaced', async () => {
    other = createServer()
    await new Promise<void>((resolve) => other!.listen(path, resolve))
    // As after a kill: the file stays.
    await rename(path, `${path}.kept`)
    await new Promise((resolve) => other!.close(resolve))
    await rename(`${path}.kept`, path)
    server = await startServer({ listen: { socket: path } })
    expect(await ask('/health/live')).toMatchObject({ status: 200 })
  })

  test('one on which somebody listens is left alone, and named', async () => {
    other = createServer((socket) => socket.on('error', () => {}).end('mine'))
    await new Promise<void>((resolve) => other!.listen(path, resolve))
    await expect(startServer({ listen: { socket: path } })).rejects.toThrow(
      `cannot listen on ${path}: something listens there already; see listen.socket`,
    )
    expect((await stat(path)).isSocket()).toBe(true)
  })

  test('a file that is none is left alone', async () => {
    await writeFile(path, 'precious')
    await expect(startServer({ listen: { socket: path } })).rejects.toThrow('something is there that is no socket')
    expect((await stat(path)).size).toBe(8)
  })
})

test('who is believed about addresses: the other end of a unix socket, and none whose connection has merely closed', () => {
  const read = addressReader(['10.0.0.1'])
  expect(read(UNIX_PEER, '192.0.2.7')).toBe('192.0.2.7')
  expect(read(UNIX_PEER, '192.0.2.7, 10.0.0.1')).toBe('192.0.2.7')
  expect(read(UNIX_PEER, '192.0.2.7, 198.51.100.2')).toBe('198.51.100.2')
  expect(read(UNIX_PEER, undefined)).toBe('127.0.0.1')
  expect(read(undefined, '192.0.2.7')).toBe('unknown')
  expect(addressReader([])(UNIX_PEER, '192.0.2.7')).toBe('192.0.2.7')
})
