//! A column of an image: one field of many things, in few bytes where neighbours are alike.

use prost::Message;

use super::BadImage;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Column {
    /// What all of them are, if they are alike.
    #[prost(uint64, optional, tag = "1")]
    all: Option<u64>,
    /// Otherwise how far each is from the one before, the first from 0.
    #[prost(sint64, repeated, tag = "2")]
    steps: Vec<i64>,
}

impl Column {
    pub(super) fn of(numbers: impl Iterator<Item = u64> + Clone) -> Self {
        let mut alike = numbers.clone();
        let first = alike.next();
        if first.is_some_and(|first| alike.all(|number| number == first)) {
            return Self { all: first, steps: Vec::new() };
        }
        let mut last = 0;
        let step = |number: u64| number.wrapping_sub(std::mem::replace(&mut last, number)) as i64;
        Self { all: None, steps: numbers.map(step).collect() }
    }

    /// The numbers, of which there must be so many.
    pub(super) fn read(column: Option<&Self>, len: usize) -> Result<Vec<u64>, BadImage> {
        let Self { all, steps } = column.ok_or(BadImage::Lacks("a column"))?;
        if let Some(all) = all {
            return if steps.is_empty() {
                Ok(vec![*all; len])
            } else {
                Err(BadImage::Impossible("a column"))
            };
        }
        if steps.len() != len {
            return Err(BadImage::Impossible("a column"));
        }
        let mut last = 0_u64;
        let number = |step: &i64| {
            last = last.wrapping_add(*step as u64);
            last
        };
        Ok(steps.iter().map(number).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_were() {
        let many: Vec<u64> = (0..3000).map(|number| (number * number % 977) << (number % 60)).collect();
        for numbers in [&[][..], &[0], &[7; 1024], &[u64::MAX, 0, u64::MAX, 1], &many] {
            let column = Column::of(numbers.iter().copied());
            let read = Column::decode(&*column.encode_to_vec()).unwrap();
            assert_eq!(Column::read(Some(&read), numbers.len()).unwrap(), numbers);
        }
        let alike = Column::of([9; 1024].into_iter());
        assert!(alike.encoded_len() < 4);
    }

    #[test]
    fn other_columns_are_refused() {
        let column = Column::of([1, 2, 3].into_iter());
        assert!(Column::read(Some(&column), 4).is_err());
        assert!(Column::read(None, 0).is_err());
        assert!(Column::read(Some(&Column { all: Some(1), ..column }), 3).is_err());
    }
}
