/** An event of the page: somebody wants the lab that its detail names. */
export const ASK_FOR_LAB = 'warpbook:ask-for-lab';
