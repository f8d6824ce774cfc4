import { execFileSync, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Certificate } from './certificate.ts'
import { freePort } from './free-port.ts'
import { waitUntil } from './wait.ts'

const PROGRAM = '/usr/sbin/slapd'

/** Where Debian's slapd is not installed, a test says `describe.skipIf(!hasSlapd())`. */
export function hasSlapd(): boolean {
  if (existsSync(PROGRAM)) return true
  console.warn('slapd is not installed: the tests of LDAP are skipped')
  return false
}

export const BASE = 'ou=people,dc=example,dc=org'
export const READER = { dn: 'cn=reader,dc=example,dc=org', password: 'reads only' }

export interface Slapd {
  readonly port: number
  close(): Promise<void>
}

export interface DirectoryEntry {
  readonly uid: string
  readonly cn: string
  readonly password: string
  readonly mail?: string
  readonly employeeType?: string
  /** Another place than directly below the people. */
  readonly below?: string
}

const entryOf = ({ uid, cn, password, mail, employeeType, below }: DirectoryEntry): string =>
  [
    `dn: uid=${uid.replace(/[,+"\\<>;]/g, '\\$&')},${below === undefined ? '' : `${below},`}${BASE}`,
    'objectClass: inetOrgPerson',
    `uid: ${uid}`,
    `cn: ${cn}`,
    `sn: ${cn}`,
    `userPassword: ${password}`,
    ...(mail === undefined ? [] : [`mail: ${mail}`]),
    ...(employeeType === undefined ? [] : [`employeeType: ${employeeType}`]),
  ].join('\n')

/** A directory server on loopback, with these people. Nobody but themselves can use their passwords. */
export async function startSlapd(people: readonly DirectoryEntry[], certificate: Certificate): Promise<Slapd> {
  const directory = await mkdtemp(join(tmpdir(), 'hearth-slapd-'))
  const port = await freePort()
  await mkdir(join(directory, 'db'))
  await writeFile(join(directory, 'key.pem'), certificate.key)
  await writeFile(join(directory, 'cert.pem'), certificate.cert)
  const settings = [
    ...['core', 'cosine', 'inetorgperson'].map((name) => `include /etc/ldap/schema/${name}.schema`),
    'modulepath /usr/lib/ldap',
    'moduleload back_mdb',
    `pidfile ${directory}/pid`,
    `TLSCertificateFile ${directory}/cert.pem`,
    `TLSCertificateKeyFile ${directory}/key.pem`,
    'database mdb',
    'suffix "dc=example,dc=org"',
    'maxsize 10485760',
    `directory ${directory}/db`,
    'access to attrs=userPassword by anonymous auth by * none',
    `access to * by dn.exact="${READER.dn}" read by self read by anonymous auth by * none`,
  ]
  const configuration = join(directory, 'slapd.conf')
  await writeFile(configuration, `${settings.join('\n')}\n`)
  const roots = [
    'dn: dc=example,dc=org\nobjectClass: domain\ndc: example',
    `dn: ${BASE}\nobjectClass: organizationalUnit\nou: people`,
    `dn: ou=team,${BASE}\nobjectClass: organizationalUnit\nou: team`,
    `dn: ${READER.dn}\nobjectClass: person\ncn: reader\nsn: reader\nuserPassword: ${READER.password}`,
  ]
  await writeFile(join(directory, 'people.ldif'), `${[...roots, ...people.map(entryOf)].join('\n\n')}\n`)
  execFileSync('/usr/sbin/slapadd', ['-f', configuration, '-l', join(directory, 'people.ldif')], { stdio: 'pipe' })
  const child = spawn(PROGRAM, ['-f', configuration, '-h', `ldap://127.0.0.1:${port}`, '-d', '0'], { stdio: 'ignore' })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  await waitUntil('the directory', () => answers(port))
  return {
    port,
    async close() {
      child.kill('SIGKILL')
      await ended
      await rm(directory, { recursive: true, force: true })
    },
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
