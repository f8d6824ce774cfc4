import { type Admission, type AdmissionParts, createAdmission } from './admission.ts'
import { createResidentEvents, type ResidentEventParts, type ResidentEvents } from './resident-events.ts'
import { createResidentState, type ResidentState, type ResidentStateParts } from './resident-state.ts'

/**
 * What this server, as a resident server, gives other servers about a room: only events that were not rejected. The caller checks whether
 * the asking server may know.
 */
export interface Resident extends Admission, ResidentEvents, ResidentState {}

export interface ResidentParts extends AdmissionParts, ResidentEventParts, ResidentStateParts {}

export function createResident(parts: ResidentParts): Resident {
  return { ...createAdmission(parts), ...createResidentEvents(parts), ...createResidentState(parts) }
}
