import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openApi, register } from '../support/api.ts'
import { freePort } from '../support/free-port.ts'
import { PROJECT_ROOT } from '../support/project.ts'
import { waitUntil } from '../support/wait.ts'

const run = promisify(execFile)
const { version } = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8')) as { version: string }

let folder: string
let child: ChildProcess | undefined

/** What a person does who has nothing but the tarball. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hearth-packed-'))
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: PROJECT_ROOT })
  await writeFile(join(folder, 'package.json'), '{"private":true}')
  const tarball = join(folder, stdout.trim().split('\n').at(-1)!)
  await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', tarball], { cwd: folder })
}, 300_000)

afterAll(async () => {
  if (child?.exitCode === null) {
    const ended = new Promise((resolve) => child?.once('close', resolve))
    child.kill('SIGTERM')
    await ended
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
})

test('the packed tarball starts in an empty folder, with a database of its own, and says its version', async () => {
  const said = await run('npx', ['--no-install', 'hearth', '--version'], { cwd: folder })
  expect(said.stdout.trim()).toBe(version)
  const port = await freePort()
  const env = { ...process.env, HEARTH__LISTEN__PORT: String(port), HEARTH__METRICS__PORT: '0' }
  let output = ''
  // The same file that npx runs: npx itself would not pass the signal on in time.
  child = spawn(join(folder, 'node_modules/.bin/hearth'), ['serve'], { cwd: folder, env })
  child.stdout?.on('data', (text: Buffer) => (output += text))
  child.stderr?.on('data', (text: Buffer) => (output += text))
  const baseUrl = `http://127.0.0.1:${port}`
  const isReady = () =>
    fetch(`${baseUrl}/health/ready`).then(
      ({ status }) => status === 200,
      () => false,
    )
  await waitUntil(
    'the packed server',
    async () => {
      if (child?.exitCode !== null) throw new Error(`it ended: ${output}`)
      return isReady()
    },
    { timeoutMs: 90_000 },
  )
  const api = openApi(baseUrl)
  const { userId } = await register(api, 'alice')
  expect(userId).toBe('@alice:localhost')
  expect((await api.call('GET', '/_matrix/federation/v1/version')).server).toEqual({ name: 'Hearth', version })
  const backup = await run('npx', ['--no-install', 'hearth', 'backup', join(folder, 'backups')], { cwd: folder, env })
  expect(backup.stdout).toMatch(/^Backup \d{8}T\d{9}Z in /)
  await api.close()
})
