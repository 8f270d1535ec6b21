-- Work over many URLs may go by a time: pages last visited before this are forgotten. In milliseconds since 1970.
ALTER TABLE jobs ADD COLUMN visited_before int8;
