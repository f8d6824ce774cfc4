import * as appservice from './cases/appservice.ts'
import * as attackBodies from './cases/attack-bodies.ts'
import * as attackFanOut from './cases/attack-fan-out.ts'
import * as attackReaders from './cases/attack-readers.ts'
import * as attackSync from './cases/attack-sync.ts'
import * as backup from './cases/backup.ts'
import * as fanOut from './cases/fan-out.ts'
import * as federationDead from './cases/federation-dead.ts'
import * as federationIn from './cases/federation-in.ts'
import * as federationJoin from './cases/federation-join.ts'
import * as federationOut from './cases/federation-out.ts'
import * as identityLookup from './cases/identity-lookup.ts'
import * as idle from './cases/idle.ts'
import * as ignored from './cases/ignored.ts'
import * as initialSync from './cases/initial-sync.ts'
import * as keys from './cases/keys.ts'
import * as loginStorm from './cases/login-storm.ts'
import * as media from './cases/media.ts'
import * as nodesSend from './cases/nodes-send.ts'
import * as nodesSync from './cases/nodes-sync.ts'
import * as noopSync from './cases/noop-sync.ts'
import * as passedOn from './cases/passed-on.ts'
import * as push from './cases/push.ts'
import * as receive from './cases/receive.ts'
import * as registerLogin from './cases/register-login.ts'
import * as relations from './cases/relations.ts'
import * as resolution from './cases/resolution.ts'
import * as roomState from './cases/room-state.ts'
import * as search from './cases/search.ts'
import * as send from './cases/send.ts'
import * as signIns from './cases/sign-ins.ts'
import * as slidingCrowd from './cases/sliding-crowd.ts'
import * as slidingFanOut from './cases/sliding-fan-out.ts'
import * as slidingNoop from './cases/sliding-noop.ts'
import * as slidingStart from './cases/sliding-start.ts'
import * as soak from './cases/soak.ts'
import * as storage from './cases/storage.ts'
import * as toDevice from './cases/to-device.ts'
import * as today from './cases/today.ts'
import * as userDirectory from './cases/user-directory.ts'
import { FLOORS } from './floor/run.ts'
import { type Measurement, mediansOf } from './measurement.ts'
import { type BenchOptions, readOptions, USAGE } from './options.ts'
import { machine, table, writeResults } from './report.ts'

const BENCHMARKS: Readonly<Record<string, (options: BenchOptions) => Promise<Measurement[]>>> = {
  [send.BENCHMARK]: send.measureSend,
  [appservice.BENCHMARK]: appservice.measureAppservice,
  [push.BENCHMARK]: push.measurePush,
  [fanOut.BENCHMARK]: fanOut.measureFanOut,
  [initialSync.BENCHMARK]: initialSync.measureInitialSync,
  [registerLogin.BENCHMARK]: registerLogin.measureRegisterLogin,
  [loginStorm.BENCHMARK]: loginStorm.measureLoginStorm,
  [signIns.BENCHMARK]: signIns.measureSignIns,
  [idle.BENCHMARK]: idle.measureIdle,
  [noopSync.BENCHMARK]: noopSync.measureNoopSync,
  [slidingStart.BENCHMARK]: slidingStart.measureSlidingStart,
  [slidingNoop.BENCHMARK]: slidingNoop.measureSlidingNoop,
  [slidingFanOut.BENCHMARK]: slidingFanOut.measureSlidingFanOut,
  [slidingCrowd.BENCHMARK]: slidingCrowd.measureSlidingCrowd,
  [soak.BENCHMARK]: soak.measureSoak,
  [storage.BENCHMARK]: storage.measureStorage,
  [roomState.BENCHMARK]: roomState.measureRoomState,
  [receive.BENCHMARK]: receive.measureReceive,
  [resolution.BENCHMARK]: resolution.measureResolution,
  [toDevice.BENCHMARK]: toDevice.measureToDevice,
  [keys.BENCHMARK]: keys.measureKeys,
  [media.BENCHMARK]: media.measureMedia,
  [identityLookup.BENCHMARK]: identityLookup.measureIdentityLookup,
  [federationIn.BENCHMARK]: federationIn.measureFederationIn,
  [federationOut.BENCHMARK]: federationOut.measureFederationOut,
  [federationDead.BENCHMARK]: federationDead.measureFederationDead,
  [relations.BENCHMARK]: relations.measureRelations,
  [search.BENCHMARK]: search.measureSearch,
  [today.BENCHMARK]: today.measureToday,
  [ignored.BENCHMARK]: ignored.measureIgnored,
  [userDirectory.BENCHMARK]: userDirectory.measureUserDirectory,
  [attackSync.BENCHMARK]: attackSync.measureAttackSync,
  [attackReaders.BENCHMARK]: attackReaders.measureAttackReaders,
  [federationJoin.BENCHMARK]: federationJoin.measureFederationJoin,
  [attackBodies.BENCHMARK]: attackBodies.measureAttackBodies,
  [attackFanOut.BENCHMARK]: attackFanOut.measureAttackFanOut,
  [backup.BENCHMARK]: backup.measureBackup,
  [passedOn.BENCHMARK]: passedOn.measurePassedOn,
  [nodesSync.BENCHMARK]: nodesSync.measureNodesSync,
  [nodesSend.BENCHMARK]: nodesSend.measureNodesSend,
}

async function main(args: string[]): Promise<void> {
  const options = readOptions(args)
  if (options === undefined) return console.log(USAGE)
  const unknown = options.names.find((name) => !(name in BENCHMARKS) && name !== 'floor')
  if (unknown !== undefined) throw new Error(`there is no benchmark ${unknown}\n\n${USAGE}`)
  const isFloorAlone = options.names.length === 1 && options.names[0] === 'floor'
  const isEverything = options.names.length === 0 || isFloorAlone
  const names = isEverything ? Object.keys(BENCHMARKS) : options.names.filter((name) => name !== 'floor')
  const floorNames = isEverything ? Object.keys(FLOORS) : names.filter((name) => name in FLOORS)
  console.log(`${machine()}\n`)

  const floors: Measurement[] = []
  const rows: Measurement[] = []
  for (let round = 0; round < options.rounds; round++) {
    if (options.withFloor)
      for (const name of floorNames) floors.push(...(await run(`floor of ${name}`, FLOORS[name]!, options)))
    if (isFloorAlone) continue
    for (const name of names) rows.push(...(await run(`${name} on ${options.serverName}`, BENCHMARKS[name]!, options)))
  }
  if (isFloorAlone) return
  const [ours, least] = [mediansOf(rows), mediansOf(floors)]

  if (names.length + floors.length > 1) console.log(`${options.serverName}\n\n${table(ours, least)}`)
  if (options.write) writeResults(options.serverName, `npm run bench -- ${args.join(' ')}`.trim(), ours, least)
}

type Runner = (options: BenchOptions) => Promise<Measurement[]>

async function run(title: string, runner: Runner, options: BenchOptions): Promise<Measurement[]> {
  console.log(`${title} ...`)
  const rows = await runner(options)
  console.log(`${table(rows, [])}\n`)
  return rows
}

main(process.argv.slice(2)).catch((error: Error) => {
  console.error(error.message)
  process.exitCode = 1
})
