import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { prepareChildServer } from '../../../support/child-server.ts'
import { createTestDatabase } from '../../../support/database.ts'
import { PROJECT_ROOT } from '../../../support/project.ts'
import { waitUntil } from '../../../support/wait.ts'

test('SIGUSR2 and SIGHUP end no process that is still preparing its nodes', async () => {
  const asking = new Set<Socket>()
  const silent = createServer((socket) => {
    asking.add(socket)
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as AddressInfo
  const url = `postgres://hearth@127.0.0.1:${port}/hearth`
  const server = await prepareChildServer({ args: ['--nodes', '2'], env: { HEARTH__DATABASE__URL: url } })
  try {
    server.begin()
    await waitUntil('a question to the database', () => asking.size > 0)
    process.kill(server.pid(), 'SIGHUP')
    process.kill(server.pid(), 'SIGUSR2')
    await waitUntil('a word about it', () => !server.isRunning() || server.output().includes('no node has begun yet'))
    for (const socket of asking) socket.destroy()
    silent.close()
    await waitUntil('its end', () => !server.isRunning())
    expect(server.output()).toContain('no node has begun yet')
    expect(server.output()).toContain('the database of database.url cannot be used')
  } finally {
    for (const socket of asking) socket.destroy()
    silent.close()
    await server.dispose()
  }
})

/** Starts Hearth as process managers do that run programs as workers, and stops it as they do. */
const MANAGER = `
const cluster = require('node:cluster')
cluster.setupPrimary({ exec: process.env.PROGRAM, args: ['serve'] })
const worker = cluster.fork()
process.on('SIGTERM', () => worker.process.kill('SIGINT'))
worker.once('exit', (code, signal) => {
  console.log('the worker ended with', code, signal)
  process.exit()
})
`

test('SIGINT stops a process that a process manager started as a worker', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'hearth-worker-'))
  const database = await createTestDatabase()
  const manager = join(folder, 'manager.cjs')
  await writeFile(manager, MANAGER)
  const server = await prepareChildServer({
    mainFile: () => manager,
    env: { PROGRAM: join(PROJECT_ROOT, 'dist/main.js'), HEARTH__DATABASE__URL: database.url },
  })
  try {
    await server.start()
    await server.kill('SIGTERM')
    expect(server.output()).toMatch(/"msg":"stopped"/)
    expect(server.output()).toContain('the worker ended with 0 null')
  } finally {
    await server.dispose()
    await database.drop()
    await rm(folder, { recursive: true })
  }
})
