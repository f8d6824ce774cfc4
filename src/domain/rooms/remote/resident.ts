import { type Admission, type AdmissionParts, createAdmission } from './admission.ts'
import { createResidentEvents, type ResidentEventParts, type ResidentEvents } from './resident-events.ts'
import { createResidentState, type ResidentState, type ResidentStateParts } from './resident-state.ts'

/**
 * What this server, being in a room, has for others that ask about it: only events that were not rejected. Whether the asking
 * server may know is for the caller.
 */
export interface Resident extends Admission, ResidentEvents, ResidentState {}

export interface ResidentParts extends AdmissionParts, ResidentEventParts, ResidentStateParts {}

export function createResident(parts: ResidentParts): Resident {
  return { ...createAdmission(parts), ...createResidentEvents(parts), ...createResidentState(parts) }
}
