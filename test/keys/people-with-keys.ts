import type { House, Person } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'
import { type DeviceMaker, deviceMaker } from './key-maker.ts'

/** A person whose device has published its keys. */
export interface KeyedPerson extends Person {
  readonly maker: DeviceMaker
  /** Publishes other keys for the same device: others have to ask for them again. */
  rekey(): Promise<void>
}

export async function keyedPerson(house: House, name: string): Promise<KeyedPerson> {
  const person = await house.person(name)
  const maker = deviceMaker(person)
  const publish = (from: DeviceMaker) => person.call('POST', '/keys/upload', { device_keys: from.identity() })
  await publish(maker)
  return { ...person, maker, rekey: () => publish(deviceMaker(person)) }
}

/** What an answer says of device lists, in no order. */
export const listsOf = (answer: Json): { changed: string[]; left: string[] } => {
  const { changed, left } = answer.device_lists ?? answer
  return { changed: changed.toSorted(), left: left.toSorted() }
}

export const idsOfPeople = (...people: Person[]): string[] => people.map(({ userId }) => userId).toSorted()
