import { execFileSync, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { notifyReady } from '../../../src/cli/serve/service-manager.ts'
import { waitUntil } from '../../support/wait.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hearth-notify-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const hasProgram = (name: string) => {
  try {
    execFileSync('sh', ['-c', `command -v ${name}`], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Binds a socket for datagrams, which Node.js cannot, and ends with the first one, which goes to standard output. */
const LISTENER = `
import socket, sys
place = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
place.bind(sys.argv[1])
place.settimeout(20)
sys.stdout.write(place.recv(4096).decode())
`

test.skipIf(!hasProgram('systemd-notify') || !hasProgram('python3'))(
  'the service manager hears that the server is ready',
  async () => {
    const path = join(folder, 'notify')
    const listener = spawn('python3', ['-c', LISTENER, path])
    let heard = ''
    listener.stdout.on('data', (text: Buffer) => (heard += text))
    const ended = new Promise((resolve) => listener.once('close', resolve))
    try {
      await waitUntil('the socket', () => existsSync(path))
      notifyReady({ NOTIFY_SOCKET: path, PATH: process.env.PATH }, pino({ level: 'silent' }))
      await ended
      expect(heard.split('\n')).toEqual(expect.arrayContaining(['READY=1', 'STATUS=serving']))
    } finally {
      listener.kill()
    }
  },
)

test('a message that cannot be sent is a warning, and none is sent where nobody asked', async () => {
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => lines.push(line) })
  notifyReady({ PATH: process.env.PATH }, log)
  notifyReady({ NOTIFY_SOCKET: join(folder, 'nowhere'), PATH: folder }, log)
  await waitUntil('the warning', () => lines.length > 0)
  expect(lines).toHaveLength(1)
  expect(JSON.parse(lines[0]!)).toMatchObject({ level: 40, msg: expect.stringContaining('Type=exec') })
})

test('the unit names exit codes that the program has, and no directory that it may not write to', async () => {
  const unit = await readFile(join(import.meta.dirname, '../../../contrib/systemd/hearth.service'), 'utf8')
  const value = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(unit)?.[1]
  const { EXIT } = await import('../../../src/cli/command.ts')
  expect(value('RestartPreventExitStatus')).toBe(`${EXIT.usage} ${EXIT.config}`)
  expect(value('WorkingDirectory')).toBe(`/var/lib/${value('StateDirectory')}`)
  expect(value('ExecStart')).toContain(value('ConditionPathExists'))
})
